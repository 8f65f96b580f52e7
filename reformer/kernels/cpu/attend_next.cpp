#include "reformer/kernels/attend_next.h"

#include "reformer/kernels/cpu/dispatch.h"

namespace reformer::kernels::cpu {

REFORMER_DECLARE_SIMD_KERNEL(attend_next, AttendNextArgs)

void attend_next(const AttendNextArgs<float>& args) {
  dispatch(args, plain::attend_next<float>, avx2::attend_next<float>,
           avx512::attend_next<float>);
}

void attend_next(const AttendNextArgs<double>& args) {
  plain::attend_next(args);
}

}  // namespace reformer::kernels::cpu
