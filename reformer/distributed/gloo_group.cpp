#define USE_C10D_GLOO  // LibTorch was built with it
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstdlib>

#include "reformer/distributed/process_group.h"

namespace reformer {

c10::intrusive_ptr<c10d::Backend> make_gloo_group(
    const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place,
    const std::string& address) {
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(place.timeout);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr
                                 ? Gloo::createDeviceForInterface(interface)
                                 : Gloo::createDeviceForHostname(address));
  return c10::make_intrusive<Gloo>(store, place.rank, place.size, options);
}

}  // namespace reformer
