// How errors that the user can mend are raised.
//
// A user's mistake (a wrong size, an unknown name) throws Error before any
// work is done. The message names the operation or the setting, what was
// required and what was given. Mistakes of our own are assertions.
#pragma once

#include <sstream>

#include "reformer/error.h"  // class Error, which users catch

namespace reformer {

// Throws Error with the parts joined into one sentence, unless `condition`.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (condition) return;
  std::ostringstream message;
  (message << ... << parts);
  throw Error(message.str());
}

}  // namespace reformer
