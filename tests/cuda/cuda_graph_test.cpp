// Recordings of work on a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/device/cuda_graph.h"
#include "tests/cuda/no_more_memory.h"

namespace reformer {
namespace {

const at::Device kGpu(at::kCUDA, 0);

// LibTorch's allocator keeps a table of the captures' memory. Were their
// names of one hash, forty of them would ask for a table of 2^40 places.
TEST(CudaDeviceGraph, ManyLiveAtATimeEachWithItsOwnMemory) {
  constexpr int kGraphs = 40;
  auto sum = at::zeros({1000}, at::TensorOptions(kGpu));
  const auto add = [&](int i) { sum += at::full({1000}, i, sum.options()); };
  add(0);
  std::vector<std::unique_ptr<CudaGraph>> graphs;
  for (int i = 1; i <= kGraphs; ++i) {
    graphs.push_back(std::make_unique<CudaGraph>(kGpu));
    graphs.back()->capture([&] { add(i); });
  }
  EXPECT_EQ(sum.abs().max().item<float>(), 0) << "capture ran what it wrote";
  for (const auto& graph : graphs) graph->replay();
  const float all = kGraphs * (kGraphs + 1) / 2;
  EXPECT_EQ(sum.min().item<float>(), all);
  EXPECT_EQ(sum.max().item<float>(), all);
}

TEST(CudaDeviceGraph, AFailedRecordingDoesNothingAndLeavesTheDeviceUsable) {
  auto sum = at::zeros({1000}, at::TensorOptions(kGpu));
  const auto add_one = [&] { sum += at::full({1000}, 1, sum.options()); };
  add_one();
  EXPECT_THROW(CudaGraph(kGpu).capture([&] {
    add_one();
    throw Error("half way");
  }),
               Error);
  {
    const NoMoreMemory taken(kGpu);
    EXPECT_THROW(CudaGraph(kGpu).capture(add_one), c10::Error);
    add_one();
  }
  EXPECT_EQ(sum.max().item<float>(), 2);
  CudaGraph graph(kGpu);
  graph.capture(add_one);
  graph.replay();
  EXPECT_EQ(sum.max().item<float>(), 3);
}

}  // namespace
}  // namespace reformer
