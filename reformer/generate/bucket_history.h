// Which positions of the texts so far fell into each bucket, the last of them,
// on the CPU or on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/kernels/attend_next.h"
#include "reformer/kernels/bucket_history.h"

namespace reformer {

using kernels::PositionList;

struct BucketShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t rounds = 0;  // 0: no LSH, nothing is kept
  int64_t n_buckets = 0;
  int64_t window = 0;    // members of a bucket that are asked for
  int64_t together = 0;  // rounds that a softmax goes over; 0: all
};

class BucketHistory {
 public:
  BucketHistory(const BucketShape& shape, at::Device device);

  //   buckets  [batch, heads, rounds, length] uint16
  //   first    [batch]: where a row's positions begin
  //   counts   [batch]: how many of `length` a row has
  //
  // Throws Error, with nothing appended, where a bucket is out of range; a GPU
  // does not look at them and takes such a one for the last. There only once,
  // from 0 on: attend_next appends what follows.
  void append(const at::Tensor& buckets, const std::vector<int64_t>& first,
              const std::vector<int64_t>& counts);

  // Rows that come and go, as KeyValueCache's.
  void use_rows(int64_t rows) { shape_.batch = rows; }
  void take_row(int64_t row, BucketHistory& one);
  void move_row(int64_t from, int64_t to);
  void clear_row(int64_t row);

  const BucketShape& shape() const { return shape_; }

  // The last members of each of `buckets` [batch, heads, rounds, 1], until the
  // next append; on the CPU.
  std::vector<PositionList> last(const at::Tensor& buckets) const;

  // As kernels see them; on a GPU.
  kernels::BucketHistory history() const;

 private:
  // What a CPU keeps of a row: of each bucket of each round of each head the
  // last `window` members, or up to twice as many, which is all that the
  // trailing rule ever asks for.
  class Members {
   public:
    Members(int64_t rounds, const BucketShape& shape)
        : n_buckets_(shape.n_buckets),
          window_(shape.window),
          members_(static_cast<std::size_t>(rounds * shape.n_buckets)) {}

    // Positions come in ascending order.
    void append(int64_t round, int64_t bucket, int64_t position);

    // The last `window` or fewer; until the next append.
    PositionList last(int64_t round, int64_t bucket) const;

   private:
    std::size_t index(int64_t round, int64_t bucket) const;

    int64_t n_buckets_;
    int64_t window_;
    std::vector<std::vector<int32_t>> members_;  // [rounds * n_buckets]
  };

  int64_t per_row() const { return shape_.heads * shape_.rounds; }
  at::Tensor of_row(const at::Tensor& all, int64_t row) const {
    return all.narrow(0, row * per_row(), per_row());
  }

  BucketShape shape_;
  std::vector<Members> lists_;  // on a CPU, of each row: a round for each
                                // (head, round)
  at::Tensor members_;  // on a GPU: [batch * heads * rounds, n_buckets, window]
  at::Tensor counts_;   // on a GPU: [batch * heads * rounds, n_buckets]
  bool filled_ = false;  // on a GPU
};

}  // namespace reformer
