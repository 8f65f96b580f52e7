// The top tokens of one row at a time, in one pass: the sum of exponentials
// against a running maximum, and a look at single logits only where a few
// vectors hold one that is larger than the k-th so far.
#include "reformer/kernels/top_tokens.h"

#include <algorithm>

#include "reformer/base/parallel.h"
#include "reformer/kernels/cpu/simd/vector.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
namespace {

constexpr int kBlockVectors = 4;
template <class T>
constexpr int64_t kBlock = kBlockVectors* kLanes<T>;

template <class T>
class Row {
 public:
  Row(const TopTokensArgs<T>& args, int64_t row)
      : args_(args),
        logits_(args.logits + row * args.stride),
        best_(args.state.best + row * args.k),
        tokens_(args.state.tokens + row * args.k),
        max_(args.state.max[row]),
        sums_{args.state.sum[row]} {}

  void run(int64_t row) {
    int64_t at = 0;
    for (; at + kBlock<T> <= args_.columns; at += kBlock<T>) {
      add_block(logits_ + at, args_.first_token + at);
    }
    if (at < args_.columns) {
      T rest[kBlock<T>];
      std::fill(std::copy(logits_ + at, logits_ + args_.columns, rest),
                rest + kBlock<T>, kMinusInfinity<T>);
      add_block(rest, args_.first_token + at);
    }
    args_.state.max[row] = max_;
    args_.state.sum[row] = sum_of<T>(sums_);
    const int64_t besides = args_.besides - args_.first_token;
    if (besides >= 0 && besides < args_.columns) {
      args_.state.besides[row] = logits_[besides];
    }
  }

 private:
  void add_block(const T* block, int64_t token) {
    Vector<T> x[kBlockVectors];
    for (int v = 0; v < kBlockVectors; ++v) x[v] = load(block + v * kLanes<T>);
    Vector<T> largest = x[0];
    for (int v = 1; v < kBlockVectors; ++v) {
      largest = x[v] > largest ? x[v] : largest;
    }
    T lanes[kLanes<T>];
    store(lanes, largest);
    const T of_block = *std::max_element(lanes, lanes + kLanes<T>);  // or NaN,
    if (of_block > max_) rescale(of_block);  // which comes into the sum
    if (of_block == kMinusInfinity<T>) return;
    for (int v = 0; v < kBlockVectors; ++v) sums_ += exp_of<T>(x[v] - max_);
    if (of_block > best_[args_.k - 1]) select(block, token);
  }

  void rescale(T max) {
    sums_ *= max_ == kMinusInfinity<T> ? T(0) : std::exp(max_ - max);
    max_ = max;
  }

  // Later tokens come behind their equals.
  void select(const T* block, int64_t token) {
    for (int64_t i = 0; i < kBlock<T>; ++i) {
      if (!(block[i] > best_[args_.k - 1])) continue;
      int64_t place = args_.k - 1;
      for (; place > 0 && block[i] > best_[place - 1]; --place) {
        best_[place] = best_[place - 1];
        tokens_[place] = tokens_[place - 1];
      }
      best_[place] = block[i];
      tokens_[place] = static_cast<int32_t>(token + i);
    }
  }

  const TopTokensArgs<T>& args_;
  const T* logits_;
  T* best_;
  int32_t* tokens_;
  T max_;
  Vector<T> sums_;
};

}  // namespace

template <class T>
void top_tokens(const TopTokensArgs<T>& args) {
  constexpr int64_t kWorthwhile = 1 << 16;  // logits
  parallel_tasks_if(args.rows * args.columns >= kWorthwhile, args.rows,
                    [&](int64_t row) { Row<T>(args, row).run(row); });
}

template void top_tokens(const TopTokensArgs<float>&);
#ifndef __AVX2__  // float64 runs on the plain kernel alone
template void top_tokens(const TopTokensArgs<double>&);
#endif

}  // namespace reformer::kernels::cpu::REFORMER_ISA
