// What a layer of lsh_huggingface remembers of the texts so far.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/ops/huggingface_lsh.h"

namespace reformer {

struct HuggingfaceCacheConfig {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t rounds = 1;
  int64_t d_head = 0;
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
};

// A later token moves what earlier ones see, so that nothing could be kept of
// them; as in Hugging Face's own cache, what they once computed stays. The next
// position sees what the last one of huggingface_lsh_attention sees. Sorted
// orders are kept on the CPU, and the next position waits for its buckets
// there.
class HuggingfaceCache {
 public:
  HuggingfaceCache(const HuggingfaceLsh& lsh,
                   const HuggingfaceCacheConfig& config);

  //   qk, v    [batch, heads, length, d_head]: the first positions of each row
  //   buckets  [batch, heads, rounds, length] uint16
  //   counts   [batch]: how many of them are a row's own
  //   returns  [batch, heads, length, d_head]: huggingface_lsh_attention's of
  //            each row alone, 0 beyond its count
  at::Tensor read(const at::Tensor& qk, const at::Tensor& v,
                  const at::Tensor& buckets,
                  const std::vector<int64_t>& counts);

  // The same of one more position of each row, after all those before it:
  // [batch, heads, 1, d_head].
  at::Tensor step(const at::Tensor& qk, const at::Tensor& v,
                  const at::Tensor& buckets);

  // Rows that come and go, as KeyValueCache's; config().batch are those in use.
  void use_rows(int64_t rows) { config_.batch = rows; }
  void take_row(int64_t row, HuggingfaceCache& one);
  void move_row(int64_t from, int64_t to);
  void clear_row(int64_t row);

  const HuggingfaceCacheConfig& config() const { return config_; }

 private:
  // Of one head and round of a row: positions by bucket, then by position.
  struct SortedRound {
    std::vector<uint16_t> buckets;
    std::vector<int32_t> positions;
  };

  struct Row {
    int64_t length = 0;
    at::Tensor k;  // [heads, room, d_head]
    at::Tensor v;
    std::vector<SortedRound> rounds;  // [heads, rounds]
  };

  Row empty_row() const;
  void append(Row& row, const at::Tensor& k, const at::Tensor& v);
  at::Tensor attend(const Row& row, const at::Tensor& q,
                    const std::vector<int64_t>& places) const;

  HuggingfaceLsh lsh_;
  HuggingfaceCacheConfig config_;
  std::vector<Row> rows_;  // as many as may be there
};

}  // namespace reformer
