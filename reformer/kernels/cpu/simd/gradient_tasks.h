// The tasks of the backward pass, and which of them may run at the same time.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "reformer/kernels/cpu/simd/interval_tile.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::kernels::cpu::REFORMER_ISA {
// Of interval_attention_grad.cpp alone: g++ inlines otherwise where others may
// call it.
namespace {

// The queries at some places and those of their keys at some places.
struct GradTask {
  int64_t head;  // of all heads of the batch
  int64_t query_begin;
  int64_t query_end;
  int64_t key_begin;
  int64_t key_end;
};

// How far the queries look from their own places, at most.
struct Reach {
  int64_t back = 0;
  int64_t ahead = 0;
};

template <class T>
Reach reach_of(const IntervalAttentionArgs<T>& args, int64_t batch,
               int64_t head) {
  Reach reach;
  const HeadRound<T> view(args, batch, head, /*at_round=*/0);
  for (int64_t at = 0; at < args.length * view.rounds; ++at) {
    const int64_t begin = view.interval[2 * at];
    const int64_t end = view.interval[2 * at + 1];
    if (begin >= end) continue;
    reach.back = std::max(reach.back, view.place[at] - begin);
    reach.ahead = std::max(reach.ahead, end - 1 - view.place[at]);
  }
  return reach;
}

using Phases = std::vector<std::vector<GradTask>>;

// Adds the tasks of one round of a head to `phases`, which run in turn: tasks
// of the same phase touch different rows. By the head's own reach, so that a
// row's sums have the same order alone and in a batch.
//
// Short reach: a task is a segment with all its keys. Segments two apart touch
// different rows, so the even ones come first and then the odd ones.
//
// Long reach (full attention): a task is a pair of a query segment and the key
// segment `apart` before it, one distance at a time. It touches the rows of
// both, and every segment has one such pair as queries and one as keys: so the
// pairs are taken in two turns, alternating along the chain s, s - apart, ...
void add_phases(int64_t head, int64_t length, const Reach& reach,
                Phases& phases) {
  constexpr int64_t kRows = kSegmentRows;
  const int64_t segments = (length + kRows - 1) / kRows;
  // Keys come in whole panels.
  const bool near = 2 * (std::max(reach.back, reach.ahead) + kPanel) <= kRows;
  const auto apart_at_most = [&](int64_t far) {
    return near ? 0 : std::min((far + kRows - 1) / kRows, segments - 1);
  };
  std::size_t phase = 0;
  for (int64_t apart = -apart_at_most(reach.ahead);
       apart <= apart_at_most(reach.back); ++apart) {
    for (int64_t turn = 0; turn < 2; ++turn, ++phase) {
      if (phases.size() <= phase) phases.emplace_back();
      for (int64_t s = 0; s < segments; ++s) {
        const int64_t link = near ? s : apart == 0 ? 0 : s / std::abs(apart);
        const int64_t keys = s - apart;
        if (link % 2 != turn || keys < 0 || keys >= segments) continue;
        phases[phase].push_back(
            {head, s * kRows, std::min((s + 1) * kRows, length),
             near ? 0 : keys * kRows,
             near ? length : std::min((keys + 1) * kRows, length)});
      }
    }
  }
}

}  // namespace
}  // namespace reformer::kernels::cpu::REFORMER_ISA
