// The attention of the next position of every hypothesis of a beam search: to
// the positions of its ancestors, or to the source of its sentence. Neither is
// copied when hypotheses are chosen: a table says where they lie.
#pragma once

#include <cstdint>

#include "reformer/kernels/bf16.h"
#include "reformer/kernels/rows.h"

namespace reformer::kernels {

inline constexpr int64_t kBeamBlockPositions = 32;

// Keys and values, or other numbers, of (position, slot): in blocks of
// positions, so that what is written never moves, or in one piece.
template <class T>
struct BeamBlocks {
  T* const* blocks;  // of kBeamBlockPositions positions; null: one piece,
  T* data;           // which lies here
  int64_t position_stride;
  int64_t slot_stride;
  int64_t head_stride;

  constexpr T* at(int64_t position, int64_t slot, int64_t head) const {
    T* const in = blocks ? blocks[position / kBeamBlockPositions] : data;
    const int64_t p = blocks ? position % kBeamBlockPositions : position;
    return in + p * position_stride + slot * slot_stride + head * head_stride;
  }
};

// Where position p of a row lies: a slot for each row, of every position (the
// rows of all steps, for ancestors) or the same for all (the sentence).
struct BeamSlots {
  const int32_t* slots;  // [positions, rows], or [rows]
  int64_t step;          // rows, or 0

  constexpr int64_t of(int64_t position, int64_t row) const {
    return slots[position * step + row];
  }
};

template <class T>
struct BeamAttentionArgs {
  Rows<const T> q;  // [rows, heads, 1, d_head]
  BeamBlocks<const T> keys;
  BeamBlocks<const T> values;  // may be the same, and
  int64_t value_offset;        // begin so many numbers further
  BeamSlots slots;
  int64_t begin;            // positions from here
  int64_t end;              // to here are seen,
  const int32_t* ends;      // [rows]: or to there; null: `end` holds for all
  const uint8_t* seen;      // [rows, heads, end]: which of them; null: all
  int64_t own;              // the position whose value a row has where it sees
                            // none; -1: it sees one
  int64_t successor_heads;  // of the first so many a key offers the value of
                            // the position after it
  double scale;             // of the scores
  Rows<T> output;           // [rows, heads, 1, d_head], written
  int64_t rows;
  int64_t heads;
  int64_t d_head;  // on CUDA a multiple of 8 up to 128
};

template <class T>
constexpr const T* beam_value(const BeamAttentionArgs<T>& args,
                              int64_t position, int64_t row, int64_t head) {
  return args.values.at(position, args.slots.of(position, row), head) +
         args.value_offset;
}

// Which earlier positions a row and head see by LSH: of each round the last
// `window` of its bucket; and the last `local_window` of all. Heads that do not
// hash see the last `near_window`.
struct BeamSeenArgs {
  BeamBlocks<const uint16_t> buckets;  // [rounds] of (position, slot, head)
  BeamSlots slots;
  const uint16_t* own;  // [rows, hashed_heads, rounds]: the next position's
  int64_t position;     // the next one, which sees none of itself
  int64_t rounds;
  int64_t window;
  int64_t local_window;
  int64_t near_window;
  uint8_t* seen;  // [rows, heads, position], written: 0 or 1
  int64_t rows;
  int64_t heads;
  int64_t hashed_heads;  // the first so many
};

namespace cpu {
void beam_attention(const BeamAttentionArgs<float>& args);
void beam_attention(const BeamAttentionArgs<double>& args);
void beam_seen(const BeamSeenArgs& args);
}  // namespace cpu

namespace cuda {
// Bytes of the workspace.
int64_t beam_attention_workspace(const BeamAttentionArgs<float>& args);
int64_t beam_attention_workspace(const BeamAttentionArgs<Bf16>& args);
void beam_attention(const BeamAttentionArgs<float>& args, void* workspace,
                    void* stream);
void beam_attention(const BeamAttentionArgs<Bf16>& args, void* workspace,
                    void* stream);
void beam_seen(const BeamSeenArgs& args, void* stream);
}  // namespace cuda

}  // namespace reformer::kernels
