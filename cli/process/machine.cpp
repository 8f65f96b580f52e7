#include "cli/process/machine.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "reformer/base/instruction_set.h"
#include "reformer/base/parallel.h"
#include "reformer/device/device.h"

namespace reformer::cli {
namespace {

constexpr const char* kHugePages = "THP_MEM_ALLOC_ENABLE";  // LibTorch's name

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

int available_threads() {
  // Before LibTorch's first parallel work sets it to the physical cores.
  static const int count = threads();
  return count;
}

void use_threads(int count) {
  set_threads(count);
  // LibTorch would otherwise set its own default at its first parallel work.
  at::set_num_threads(count);
}

int64_t physical_memory_bytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

void use_huge_pages() { setenv(kHugePages, "1", /*overwrite=*/0); }

std::string describe_machine(c10::Device device) {
  if (!device.is_cpu()) return cuda_device_name(device);
  const char* huge_pages = std::getenv(kHugePages);
  const bool huge = huge_pages != nullptr && std::string(huge_pages) == "1";
  return processor_name() + ", " + std::to_string(threads()) +
         (threads() == 1 ? " thread, " : " threads, ") +
         name_of(instruction_set()) + " kernels" + (huge ? ", huge pages" : "");
}

}  // namespace reformer::cli
