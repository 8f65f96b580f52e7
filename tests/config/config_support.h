// How tests of settings look at errors.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "reformer/base/errors.h"

namespace reformer {

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << part << "' is not in: " << text;
}

}  // namespace reformer
