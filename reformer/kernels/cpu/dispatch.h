// Picks the compilation of a SIMD kernel that this process runs.
#pragma once

#include "reformer/base/instruction_set.h"

namespace reformer::kernels::cpu {

namespace plain {}
#ifdef REFORMER_HAVE_X86
namespace avx2 {}
namespace avx512 {}
#else
namespace avx2 = plain;
namespace avx512 = plain;
#endif

template <class Args>
using Kernel = void (*)(const Args&);

template <class Args>
void dispatch(const Args& args, Kernel<Args> plain, Kernel<Args> avx2,
              Kernel<Args> avx512) {
  switch (instruction_set()) {
    case InstructionSet::kPlain:
      return plain(args);
    case InstructionSet::kAvx2:
      return avx2(args);
    case InstructionSet::kAvx512:
      return avx512(args);
  }
}

}  // namespace reformer::kernels::cpu

// Declares `template <class T> void name(const Args<T>&)` in the namespace of
// every instruction set that simd/name.cpp is compiled for.
#ifdef REFORMER_HAVE_X86
#define REFORMER_DECLARE_SIMD_KERNEL(name, Args) \
  namespace plain {                              \
  template <class T>                             \
  void name(const Args<T>&);                     \
  }                                              \
  namespace avx2 {                               \
  template <class T>                             \
  void name(const Args<T>&);                     \
  }                                              \
  namespace avx512 {                             \
  template <class T>                             \
  void name(const Args<T>&);                     \
  }
#else
#define REFORMER_DECLARE_SIMD_KERNEL(name, Args) \
  namespace plain {                              \
  template <class T>                             \
  void name(const Args<T>&);                     \
  }
#endif
