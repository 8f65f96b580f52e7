// Calls two constructors of LibTorch's CUDA part by their names, and virtual
// functions from then on, because the program is not linked with it
// (docs/decisions/007) and need not know NCCL's headers.
#include <dlfcn.h>

#include "reformer/base/errors.h"
#include "reformer/distributed/process_group.h"

namespace reformer {
namespace {

using c10::intrusive_ptr;
using c10d::Backend;
using c10d::Store;

// c10d::ProcessGroupNCCL::Options::Options(bool is_high_priority_stream)
constexpr const char* kMakeOptions = "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb";
using MakeOptions = void (*)(void* at, bool is_high_priority_stream);

// c10d::ProcessGroupNCCL::ProcessGroupNCCL(intrusive_ptr<Store>, int, int,
//                                          intrusive_ptr<Options>)
constexpr const char* kMakeGroup =
    "_ZN4c10d16ProcessGroupNCCLC1EN3c1013intrusive_ptrINS_5StoreENS1_"
    "6detail34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_"
    "7OptionsENS5_IS8_EEEE";
// Objects with destructors travel by their address, whatever their type.
using MakeGroup = void (*)(void* at, intrusive_ptr<Store> store, int rank,
                           int size, intrusive_ptr<Backend::Options> options);

template <class Function>
Function found(const char* name) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  require(symbol != nullptr,
          "distributed.backend: LibTorch's CUDA part has no NCCL; use gloo");
  return reinterpret_cast<Function>(symbol);
}

// The memory is given back by the object's own virtual destructor.
template <class Base, class Make>
intrusive_ptr<Base> made(const Make& make) {
  void* memory = ::operator new(kNcclRoom);
  try {
    make(memory);
  } catch (...) {
    ::operator delete(memory);
    throw;
  }
  return intrusive_ptr<Base>::unsafe_steal_from_new(static_cast<Base*>(memory));
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_nccl_group(
    const c10::intrusive_ptr<c10d::Store>& store, const GroupPlace& place) {
  const auto make_options = found<MakeOptions>(kMakeOptions);
  const auto make_group = found<MakeGroup>(kMakeGroup);
  const auto options = made<Backend::Options>(
      [&](void* at) { make_options(at, /*is_high_priority_stream=*/true); });
  options->timeout = place.timeout;
  return made<Backend>([&](void* at) {
    make_group(at, store, place.rank, place.size, options);
  });
}

}  // namespace reformer
