// Loops and sums over a parameter's elements that are the same, bit for bit,
// for any number of threads: chunks are cut by size alone, each is one task's,
// and the chunks' sums are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reformer/base/parallel.h"

namespace reformer {

// Elements of a task: few enough that a small parameter feeds several threads,
// many enough that starting a task costs nothing (128 KiB of float32).
inline constexpr int64_t kChunkElements = 1 << 15;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls body(begin, end) for each chunk of [0, elements).
template <class Body>
void for_each_chunk(int64_t elements, const Body& body) {
  parallel_tasks(ceil_div(elements, kChunkElements), [&](int64_t task) {
    const int64_t begin = task * kChunkElements;
    body(begin, std::min(begin + kChunkElements, elements));
  });
}

// The sum of body(task) over the tasks.
template <class Body>
double sum_over_tasks(int64_t tasks, const Body& body) {
  std::vector<double> sums(tasks);
  parallel_tasks(tasks, [&](int64_t task) { sums[task] = body(task); });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// The sum of body(begin, end) over the chunks of [0, elements).
template <class Body>
double sum_over_chunks(int64_t elements, const Body& body) {
  const int64_t tasks = ceil_div(elements, kChunkElements);
  return sum_over_tasks(tasks, [&](int64_t task) {
    const int64_t begin = task * kChunkElements;
    return body(begin, std::min(begin + kChunkElements, elements));
  });
}

// In double: squares of large float32 gradients would overflow, and a long sum
// of them would round.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) {
    const double value = x[j];
    sum += value * value;
  }
  return sum;
}

}  // namespace reformer
