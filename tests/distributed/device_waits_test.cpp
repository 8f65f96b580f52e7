#include "reformer/distributed/device_waits.h"

#include <gtest/gtest.h>

namespace reformer {
namespace {

// What an operation of a GPU's would say of itself.
struct Operation {
  bool ready = false;
  bool ended = false;

  void add_to(DeviceWaits& waits) {
    waits.add([this] { return ready; }, [this] { return ended; });
  }
};

TEST(DeviceWaits, AnOperationWaitsFromWhenItIsReadyUntilItHasEnded) {
  DeviceWaits waits;
  EXPECT_EQ(waits.waiting(1), 0);
  Operation sum;
  sum.add_to(waits);
  EXPECT_EQ(waits.waiting(2), 0);
  EXPECT_EQ(waits.waiting(99), 0);  // the device computes, as long as it takes
  sum.ready = true;
  EXPECT_EQ(waits.waiting(100), 0);
  EXPECT_EQ(waits.waiting(103), 3);
  EXPECT_EQ(waits.waiting(105), 5);
  sum.ended = true;
  EXPECT_EQ(waits.waiting(106), 0);
}

TEST(DeviceWaits, EachOperationWaitsForItself) {
  DeviceWaits waits;
  Operation first, second;
  first.ready = second.ready = true;
  first.add_to(waits);
  second.add_to(waits);
  EXPECT_EQ(waits.waiting(10), 0);
  EXPECT_EQ(waits.waiting(14), 4);
  first.ended = true;
  EXPECT_EQ(waits.waiting(15), 0);
  EXPECT_EQ(waits.waiting(17), 2);
  second.ended = true;
  Operation third;
  third.ready = true;
  third.add_to(waits);  // forgets the second
  EXPECT_EQ(waits.waiting(20), 0);
  EXPECT_EQ(waits.waiting(21), 1);
}

}  // namespace
}  // namespace reformer
