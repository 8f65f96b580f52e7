#include "reformer/device/cuda_graph.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "reformer/base/errors.h"
#include "reformer/device/device.h"
#include "reformer/kernels/cuda_graph.h"

namespace reformer {

// What captures are made on. The memory that LibTorch gives the matmuls of
// matrices on a stream is part of every capture that was made there: no two
// of these may run at the same time.
struct CaptureStream {
  explicit CaptureStream(c10::Device device)
      : side(device, /*to_capture=*/true) {}

  // What is launched on `next` from here on waits for all captures that were
  // launched before, wherever. Free of cost where that is the same stream.
  void continue_on(c10::Stream next) {
    if (last && *last != next) {
      c10::Event before(next.device_type());
      before.record(*last);
      before.block(next);
    }
    last = next;
  }

  SideStream side;   // the default stream cannot be captured
  std::mutex mutex;  // one thread at a time captures or launches
  std::optional<c10::Stream> last;
};

namespace {

using SharedStream = std::shared_ptr<CaptureStream>;

// Of more threads than LibTorch has streams, some share one.
SharedStream new_capture_stream(c10::Device device) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<void*, SharedStream>;  // outlive all graphs
  auto fresh = std::make_shared<CaptureStream>(device);
  const std::lock_guard lock(*mutex);
  return known->try_emplace(fresh->side.native_handle(), fresh).first->second;
}

// One for all captures of a thread: for every stream that matrices were ever
// multiplied on, LibTorch keeps 32 MiB to the end.
SharedStream capture_stream(c10::Device device) {
  thread_local std::map<c10::DeviceIndex, SharedStream> streams;
  auto& stream = streams[device.index()];
  if (!stream) stream = new_capture_stream(device);
  return stream;
}

}  // namespace

CudaGraph::CudaGraph(c10::Device device)
    : device_(device), shared_(capture_stream(device)), memory_(device) {}

CudaGraph::~CudaGraph() {
  if (graph_ == nullptr) return;
  try {
    synchronize(device_);        // the last replay still uses the memory
  } catch (const c10::Error&) {  // the device is lost, and was reported
  }
  kernels::cuda::destroy_graph(graph_);
}

void CudaGraph::capture(const std::function<void()>& work) {
  require(graph_ == nullptr, "CUDA graph: captured twice");
  const std::lock_guard lock(shared_->mutex);
  const LaunchGuard launch(device_);
  void* stream = shared_->side.native_handle();
  memory_.begin(stream);
  try {
    kernels::cuda::begin_capture(stream);
    shared_->side.run(work);
    graph_ = kernels::cuda::end_capture(stream);
  } catch (...) {
    kernels::cuda::abandon_capture(stream);
    memory_.end();
    throw;
  }
  memory_.end();
}

void CudaGraph::replay() {
  require(graph_ != nullptr, "CUDA graph: nothing is captured");
  const std::lock_guard lock(shared_->mutex);
  const LaunchGuard launch(device_);
  shared_->continue_on(
      c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  kernels::cuda::launch_graph(graph_, launch.stream());
}

}  // namespace reformer
