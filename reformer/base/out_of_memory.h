// Want of memory on a device, told apart from other errors: whoever can do with
// less catches this one alone.
#pragma once

#include "reformer/base/errors.h"

namespace reformer {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace reformer
