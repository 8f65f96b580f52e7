#include "reformer/kernels/device_graph.h"

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

cudaGraphExec_t exec_of(void* graph) {
  return static_cast<cudaGraphExec_t>(graph);
}

}  // namespace

void begin_recording(void* stream) {
  check(cudaStreamBeginCapture(stream_of(stream),
                               cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

void* end_recording(void* stream) {
  cudaGraph_t recorded = nullptr;
  check(cudaStreamEndCapture(stream_of(stream), &recorded),
        "cudaStreamEndCapture");
  cudaGraphExec_t exec = nullptr;
  const auto status = cudaGraphInstantiate(&exec, recorded);
  cudaGraphDestroy(recorded);
  check(status, "cudaGraphInstantiate");
  return exec;
}

void abandon_recording(void* stream) noexcept {
  cudaGraph_t recorded = nullptr;
  cudaStreamEndCapture(stream_of(stream), &recorded);
  if (recorded != nullptr) cudaGraphDestroy(recorded);
  cudaGetLastError();  // or the next launch would report it
}

void launch_graph(void* graph, void* stream) {
  check(cudaGraphLaunch(exec_of(graph), stream_of(stream)), "cudaGraphLaunch");
}

void destroy_graph(void* graph) noexcept {
  cudaGraphExecDestroy(exec_of(graph));
}

}  // namespace reformer::kernels::cuda
