// Keys and values of the texts that a batch has read so far.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/kernels/key_value_pages.h"

namespace reformer {

struct KeyValueConfig {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t d_head = 0;
  bool shared_qk = false;  // keys are queries, and are kept as k / |k|
                           // (interval_attention has the rule)
  at::ScalarType type = at::kFloat;  // or float64; on CUDA or bfloat16
  int64_t reach = 0;   // only the last so many positions will be asked for, and
                       // older ones make room; 0: all are kept
  int64_t rounds = 0;  // of buckets kept with each position: attend_next on
                       // CUDA wants them
  at::Device device = at::kCPU;
  int64_t successor_heads = 0;  // interval_attention's
};

// Rows of the batch are of different lengths and know nothing of each other.
class KeyValueCache {
 public:
  explicit KeyValueCache(const KeyValueConfig& config);

  //   k, v     [batch, heads, length, d_head]
  //   counts   [batch]: how many of `length` a row has; the others are not read
  //   buckets  [batch, heads, rounds, length] uint16; undefined without rounds
  void append(const at::Tensor& k, const at::Tensor& v,
              const std::vector<int64_t>& counts,
              const at::Tensor& buckets = {});

  // append in two halves, for whoever writes keys and values by itself: first
  // so many more positions of each row, with pages for them, which hold nothing
  // yet. Returns whether pages() is another table now.
  bool extend(const std::vector<int64_t>& counts);

  // Then the last `counts` positions of each row, as append takes them.
  void write(const at::Tensor& k, const at::Tensor& v,
             const std::vector<int64_t>& counts,
             const at::Tensor& buckets = {});

  // For rows that come and go (Decoder::join): the first `rows` of those that
  // the cache was made for are all that there is, until the next call.
  void use_rows(int64_t rows);

  // A row takes what `one`, of a single row and otherwise of the same config,
  // has read; the other has nothing to be asked for any more.
  void take_row(int64_t row, KeyValueCache& one);

  // `to` becomes what `from` is, which then is as clear_row leaves it.
  void move_row(int64_t from, int64_t to);

  // A row of no positions, whose memory is given back. On CUDA kernels may go
  // on to write at position 0 of it.
  void clear_row(int64_t row);

  const KeyValueConfig& config() const { return config_; }
  int64_t batch() const { return rows_; }
  int64_t heads() const { return config_.heads; }
  int64_t d_head() const { return config_.d_head; }
  bool shared_qk() const { return config_.shared_qk; }
  int64_t reach() const { return config_.reach; }
  at::ScalarType type() const { return config_.type; }

  // How many of a row's last positions still have a place: those in reach, in
  // whole pages.
  int64_t kept() const;

  // Positions of each row in use.
  const std::vector<int64_t>& lengths() const { return lengths_; }

  // Positions that a row can have before pages() is another table: a power of
  // two of pages, so that this is seldom.
  int64_t room() const { return table_.size(1) * kernels::kPagePositions; }

  // As kernels see it; T: as rows_of's. Further pages join the same table, in
  // the order of the current stream, until `extend` says otherwise.
  template <class T>
  kernels::PageTable<T> pages() const {
    return {static_cast<void* const*>(table_.const_data_ptr()), table_.size(1),
            shape_};
  }

  // [batch, heads] int32 zeros on CUDA, where attend_next counts blocks.
  const at::Tensor& arrivals() const { return arrivals_; }

 private:
  // What a row has in memory.
  struct Row {
    int64_t length = 0;
    std::vector<at::Tensor> blocks = {};  // several pages each
    std::vector<void*> pages = {};        // one after the other
  };

  void check(const at::Tensor& k, const at::Tensor& v,
             const std::vector<int64_t>& counts,
             const at::Tensor& buckets) const;
  void check_counts(const std::vector<int64_t>& counts) const;
  void write_checked(const at::Tensor& k, const at::Tensor& v,
                     const std::vector<int64_t>& counts,
                     const at::Tensor& buckets);
  void add_pages(Row& row);
  int64_t page_bytes() const;
  bool write_table();

  KeyValueConfig config_;
  kernels::PageShape shape_;
  int64_t rows_;                  // in use, of those below
  std::vector<Row> all_;          // [config.batch]
  std::vector<int64_t> lengths_;  // [rows_]
  at::Tensor table_;  // [config.batch, capacity]: pages where kernels read them
  bool table_is_right_ = false;
  at::Tensor cleared_;   // on CUDA: the page of all rows that were cleared
  at::Tensor arrivals_;  // on CUDA
};

}  // namespace reformer
