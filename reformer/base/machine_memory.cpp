#include "reformer/base/machine_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>

namespace reformer {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

struct System {
  int64_t memory = kUnlimited / 2;
  int64_t swap = 0;
};

System system_bytes() {
  struct sysinfo found {};
  if (::sysinfo(&found) != 0) return {};
  const int64_t unit = found.mem_unit;
  return {int64_t(found.totalram) * unit, int64_t(found.totalswap) * unit};
}

// Bytes in a file; unlimited where it says "max", or is not there.
int64_t bytes_in(const std::string& path) {
  std::ifstream file(path);
  int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : kUnlimited;
}

}  // namespace

// That of its swap aside: at most it is the machine's.
int64_t granted_memory(const std::string& folder) {
  return std::min(bytes_in(folder + "/memory.max"),
                  bytes_in(folder + "/memory/memory.limit_in_bytes"));
}

int64_t machine_memory() {
  static const int64_t bytes = [] {
    const System system = system_bytes();
    return std::min(system.memory, granted_memory("/sys/fs/cgroup")) +
           system.swap;
  }();
  return bytes;
}

std::string gibibytes(double bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / double(1 << 30));
  return text;
}

}  // namespace reformer
