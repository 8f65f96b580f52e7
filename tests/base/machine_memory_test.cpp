#include "reformer/base/machine_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

// kB of a line of /proc/meminfo, in bytes.
int64_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    int64_t number = 0;
    if (word == name + ":" && file >> number) return number << 10;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// The memory that the kernel tells of, or less where a container is granted
// less; the swap on top.
TEST(MachineMemory, IsWhatIsBuiltInOrGrantedAndTheSwap) {
  const int64_t built_in = meminfo("MemTotal");
  const int64_t expected =
      std::min(built_in, granted_memory("/sys/fs/cgroup")) +
      meminfo("SwapTotal");
  EXPECT_NEAR(double(machine_memory()), double(expected),
              double(built_in) / 100);
}

class GrantedMemory : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int64_t granted() const { return granted_memory(folder_.path()); }

  TemporaryFolder folder_;
};

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

TEST_F(GrantedMemory, IsReadInBothVersionsOfCgroups) {
  EXPECT_EQ(granted(), kUnlimited);
  put("memory/memory.limit_in_bytes", "3000000000\n");
  EXPECT_EQ(granted(), 3'000'000'000);
  put("memory.max", "2000000000\n");
  EXPECT_EQ(granted(), 2'000'000'000);
}

TEST_F(GrantedMemory, IsUnlimitedWhereItSaysSoOrNothingThatCanBeRead) {
  for (const std::string text : {"max\n", "", "0\n", "-1\n", "much\n"}) {
    put("memory.max", text);
    EXPECT_EQ(granted(), kUnlimited) << text;
  }
}

TEST(MachineMemory, IsShownWithOneDecimal) {
  EXPECT_EQ(gibibytes(double(int64_t{3} << 29)), "1.5 GiB");
}

}  // namespace
}  // namespace reformer
