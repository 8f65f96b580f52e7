#include "reformer/base/machine_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace reformer {
namespace {

TEST(MachineMemory, IsMoreThanThisProgramNeedsAndNoMoreThanThereIs) {
  EXPECT_GT(machine_memory(), int64_t{64} << 20);
  EXPECT_LT(machine_memory(), int64_t{1} << 50);
}

TEST(MachineMemory, IsShownWithOneDecimal) {
  EXPECT_EQ(gibibytes(double(int64_t{3} << 29)), "1.5 GiB");
}

}  // namespace
}  // namespace reformer
