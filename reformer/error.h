/// @file
/// What the library throws where its caller can mend something.
#pragma once

#include <stdexcept>

namespace reformer {

/// A caller's mistake: a wrong size, an unknown name, a file that is not there.
///
/// Thrown before any work is done, with one sentence that names the function or
/// the setting, what was required and what was given. Nothing that was given
/// has changed. Beyond it LibTorch's own `c10::Error` may come (no memory left
/// on a GPU), and `std::bad_alloc`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reformer
