#include "reformer/ops/device_graph.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <map>

#include "reformer/core/errors.h"
#include "reformer/kernels/device_graph.h"
#include "reformer/ops/device.h"

namespace reformer {
namespace {

// One for all recordings of a thread: for every stream that matrices were ever
// multiplied on, LibTorch keeps 32 MiB to the end.
const SideStream& recording_stream(c10::Device device) {
  thread_local std::map<c10::DeviceIndex, SideStream> streams;
  return streams.try_emplace(device.index(), device).first->second;
}

}  // namespace

DeviceGraph::DeviceGraph(c10::Device device)
    : device_(device), side_(recording_stream(device)), memory_(device) {}

DeviceGraph::~DeviceGraph() {
  if (graph_ == nullptr) return;
  try {
    synchronize(device_);        // the last replay still uses the memory
  } catch (const c10::Error&) {  // the device is lost, and was reported
  }
  kernels::cuda::destroy_graph(graph_);
}

void DeviceGraph::record(const std::function<void()>& work) {
  require(graph_ == nullptr, "device graph: recorded twice");
  void* stream = side_.native_handle();
  memory_.begin(stream);
  try {
    kernels::cuda::begin_recording(stream);
    side_.run(work);
    graph_ = kernels::cuda::end_recording(stream);
  } catch (...) {
    kernels::cuda::abandon_recording(stream);
    memory_.end();
    throw;
  }
  memory_.end();
}

void DeviceGraph::replay() {
  require(graph_ != nullptr, "device graph: nothing is recorded");
  const c10::impl::VirtualGuardImpl guard(device_.type());
  kernels::cuda::launch_graph(graph_, guard.getStream(device_).native_handle());
}

}  // namespace reformer
