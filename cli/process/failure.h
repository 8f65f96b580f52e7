// What the program says and returns where something went wrong.
#pragma once

#include <string>

namespace reformer::cli {

struct Failure {
  int status = 1;
  std::string message;  // empty: nothing is to be said
};

// Of the exception that is being handled, whatever it is.
Failure failure_of_current_exception();

// Says it on stderr, behind the rank's name where there are several; returns
// the status.
int fail(int status, const std::string& message);

}  // namespace reformer::cli
