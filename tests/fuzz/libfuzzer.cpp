// Entry points for libFuzzer, which has the main function.
//
//   fuzz_NAME --seeds=DIR   writes the target's seeds into DIR, and ends
//   fuzz_NAME ...           as libFuzzer's documentation says
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr std::string_view kSeedsOption = "--seeds=";

void write_seeds(const std::string& folder) {
  int number = 0;
  for (const auto& seed : targets().front().seeds()) {
    const std::string name = folder + "/seed-" + std::to_string(number++);
    std::ofstream(name, std::ios::binary) << seed;
  }
}

}  // namespace
}  // namespace reformer::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace reformer::fuzz;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kSeedsOption)) continue;
    write_seeds(std::string(argument.substr(kSeedsOption.size())));
    std::exit(0);
  }
  return 0;
}

// What is thrown here beside Error ends the program with its stack: a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reformer::fuzz;
  execute(targets().front(),
          std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
