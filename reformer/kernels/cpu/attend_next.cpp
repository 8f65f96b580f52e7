#include "reformer/kernels/attend_next_cpu.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(attend_next, AttendNextCpuArgs)

void attend_next(const AttendNextCpuArgs<float>& args) {
  dispatch(args, plain::attend_next<float>, avx2::attend_next<float>,
           avx512::attend_next<float>);
}

void attend_next(const AttendNextCpuArgs<double>& args) {
  plain::attend_next(args);
}

}  // namespace reformer::kernels::cpu
