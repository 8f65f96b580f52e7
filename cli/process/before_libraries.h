// What must be right before any library is initialised, and those of LibTorch
// are before main.
#pragma once

namespace reformer::cli {

// Opens standard descriptors that are closed on /dev/null, and ends the program
// with a sentence where its working folder is gone. The loader calls it first
// of all; main calls it again, so that it is linked.
void before_libraries();

}  // namespace reformer::cli
