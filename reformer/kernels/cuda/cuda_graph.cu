#include "reformer/kernels/cuda_graph.h"

#include "reformer/kernels/cuda/launch.h"

namespace reformer::kernels::cuda {
namespace {

cudaGraphExec_t exec_of(void* graph) {
  return static_cast<cudaGraphExec_t>(graph);
}

}  // namespace

void begin_capture(void* stream) {
  check(cudaStreamBeginCapture(stream_of(stream),
                               cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

void* end_capture(void* stream) {
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream_of(stream), &captured),
        "cudaStreamEndCapture");
  cudaGraphExec_t exec = nullptr;
  const auto status = cudaGraphInstantiate(&exec, captured);
  cudaGraphDestroy(captured);
  check(status, "cudaGraphInstantiate");
  return exec;
}

void abandon_capture(void* stream) noexcept {
  cudaGraph_t captured = nullptr;
  cudaStreamEndCapture(stream_of(stream), &captured);
  if (captured != nullptr) cudaGraphDestroy(captured);
  cudaGetLastError();  // or the next launch would report it
}

void launch_graph(void* graph, void* stream) {
  check(cudaGraphLaunch(exec_of(graph), stream_of(stream)), "cudaGraphLaunch");
}

void destroy_graph(void* graph) noexcept {
  cudaGraphExecDestroy(exec_of(graph));
}

}  // namespace reformer::kernels::cuda
