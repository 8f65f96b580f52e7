// In place of the CUDA kernels, where nvcc was not found.
#include <string>

#include "reformer/base/errors.h"
#include "reformer/kernels/activation_gradient.h"
#include "reformer/kernels/adafactor.h"
#include "reformer/kernels/attend_next.h"
#include "reformer/kernels/beam_attention.h"
#include "reformer/kernels/bucket_history.h"
#include "reformer/kernels/bucket_sort.h"
#include "reformer/kernels/counter_dropout.h"
#include "reformer/kernels/cuda_graph.h"
#include "reformer/kernels/device.h"
#include "reformer/kernels/embedding_gradient.h"
#include "reformer/kernels/interval_attention.h"
#include "reformer/kernels/interval_statistics.h"
#include "reformer/kernels/key_value_pages.h"
#include "reformer/kernels/layer_norm.h"
#include "reformer/kernels/lsh_buckets.h"
#include "reformer/kernels/lsh_intervals.h"
#include "reformer/kernels/lsh_rotations.h"
#include "reformer/kernels/rotary.h"
#include "reformer/kernels/short_convolution.h"
#include "reformer/kernels/small_gemm.h"
#include "reformer/kernels/top_tokens.h"

namespace reformer::kernels::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error("no CUDA here: " + why_unavailable());
}

}  // namespace

bool available() { return false; }
std::string why_unavailable() {
  return "this program was built without CUDA kernels, because CMake found no "
         "nvcc";
}
std::string why_unfit(int) { return why_unavailable(); }
std::string device_name() { absent(); }

void begin_capture(void*) { absent(); }
void* end_capture(void*) { absent(); }
void abandon_capture(void*) noexcept {}
void launch_graph(void*, void*) { absent(); }
void destroy_graph(void*) noexcept {}

void lsh_rotations(const LshRotationsArgs&, void*) { absent(); }
void lsh_buckets(const LshBucketsArgs<float>&, void*) { absent(); }
void lsh_buckets(const LshBucketsArgs<Bf16>&, void*) { absent(); }
int64_t bucket_sort_workspace(const BucketSortArgs&) { absent(); }
void bucket_sort(const BucketSortArgs&, const LshIntervalsArgs*, void*, void*) {
  absent();
}
void lsh_intervals(const LshIntervalsArgs&, void*) { absent(); }
void interval_statistics(const IntervalStatisticsArgs&, IntervalStatistics*,
                         void*) {
  absent();
}
void counter_dropout(const CounterDropoutArgs<float>&, void*) { absent(); }
void counter_dropout(const CounterDropoutArgs<Bf16>&, void*) { absent(); }
void counter_dropout(const CounterDropoutArgs<float, Bf16>&, void*) {
  absent();
}
void counter_dropout(const CounterDropoutArgs<Bf16, float>&, void*) {
  absent();
}

int64_t embedding_gradient_partials(int64_t, int64_t) { absent(); }
void embedding_gradient(const EmbeddingGradientArgs&, void*) { absent(); }
void activation_gradient(const ActivationGradientArgs&, void*) { absent(); }
void layer_norm(const LayerNormArgs<float>&, void*) { absent(); }
void layer_norm(const LayerNormArgs<Bf16>&, void*) { absent(); }
void layer_norm_grad(const LayerNormGradArgs<float>&, void*) { absent(); }
void layer_norm_grad(const LayerNormGradArgs<Bf16>&, void*) { absent(); }
int64_t adafactor_plan(AdafactorTensor*, int64_t) { absent(); }
void adafactor(const AdafactorArgs&, void*, void*) { absent(); }

void append_keys(const AppendKeysArgs<float>&, void*) { absent(); }
void append_keys(const AppendKeysArgs<Bf16>&, void*) { absent(); }
void fill_bucket_history(const FillBucketHistoryArgs&, void*) { absent(); }
int64_t attend_next_workspace(const AttendNextArgs<float>&) { absent(); }
int64_t attend_next_workspace(const AttendNextArgs<Bf16>&) { absent(); }
void attend_next(const AttendNextArgs<float>&, void*, void*) { absent(); }
void attend_next(const AttendNextArgs<Bf16>&, void*, void*) { absent(); }
void rotary(const RotaryArgs<float>&, void*) { absent(); }
void rotary(const RotaryArgs<Bf16>&, void*) { absent(); }
void short_convolution(const ShortConvolutionArgs<float>&, void*) { absent(); }
void short_convolution(const ShortConvolutionArgs<Bf16>&, void*) { absent(); }
void short_convolution_grad(const ConvolutionGradArgs<float>&, void*) {
  absent();
}
void short_convolution_grad(const ConvolutionGradArgs<Bf16>&, void*) {
  absent();
}
void next_convolution(const NextConvolutionArgs<float>&, void*) { absent(); }
void next_convolution(const NextConvolutionArgs<Bf16>&, void*) { absent(); }
void small_gemm(const SmallGemmArgs<float>&, void*) { absent(); }
void small_gemm(const SmallGemmArgs<Bf16>&, void*) { absent(); }

int64_t interval_attention_workspace(const IntervalAttentionArgs<Bf16>&) {
  absent();
}
int64_t interval_attention_grad_workspace(
    const IntervalAttentionGradArgs<Bf16>&) {
  absent();
}
void interval_attention(const IntervalAttentionArgs<Bf16>&, void*, void*) {
  absent();
}
void interval_attention_grad(const IntervalAttentionGradArgs<Bf16>&, void*,
                             void*) {
  absent();
}
void interval_attention(const IntervalAttentionArgs<float>&, void*) {
  absent();
}
void interval_attention_grad(const IntervalAttentionGradArgs<float>&, void*) {
  absent();
}

int64_t beam_attention_workspace(const BeamAttentionArgs<float>&) { absent(); }
int64_t beam_attention_workspace(const BeamAttentionArgs<Bf16>&) { absent(); }
void beam_attention(const BeamAttentionArgs<float>&, void*, void*) { absent(); }
void beam_attention(const BeamAttentionArgs<Bf16>&, void*, void*) { absent(); }
void beam_seen(const BeamSeenArgs&, void*) { absent(); }
void top_tokens(const TopTokensArgs&, void*) { absent(); }

}  // namespace reformer::kernels::cuda
