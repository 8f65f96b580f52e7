// Skips every test of this program, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <cstdio>

#include "reformer/device/device.h"

namespace reformer {
namespace {

class Gpu : public testing::Environment {
 public:
  void SetUp() override {
    if (cuda_is_available()) return;
    const std::string why = why_cuda_is_unavailable();
    std::printf("cuda_tests skipped: %s\n", why.c_str());  // ctest looks for it
    GTEST_SKIP() << why;
  }
};

const auto* const kGpu = testing::AddGlobalTestEnvironment(new Gpu);

}  // namespace
}  // namespace reformer
