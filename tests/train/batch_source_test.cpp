#include "reformer/train/batch_source.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// Batch i is all i; the one at `bad` cannot be read.
class Counting : public Task {
 public:
  explicit Counting(int64_t bad = -1) : bad_(bad) {}
  Batch training_batch(int64_t index) const override {
    require(index != bad_, "batch ", index, " cannot be read");
    return {at::full({2, 3}, index, at::kLong), at::full({2, 3}, 1, at::kBool)};
  }
  int64_t evaluation_batches(Split) const override { return 0; }
  Batch evaluation_batch(Split, int64_t) const override { return {}; }
  std::string metric_name() const override { return "loss"; }
  double metric_of(double loss) const override { return loss; }

 private:
  int64_t bad_;
};

int64_t number_of(const Batch& batch) {
  return batch.tokens[1][2].item<int64_t>();
}

TEST(BatchSource, GivesBatchesInTheirOrderFromAnyPosition) {
  const Counting task;
  BatchSource source(task, 2, 10, /*ahead=*/false);
  for (int64_t step = 0; step < 4; ++step) {
    const auto batches = source.next();
    ASSERT_EQ(batches.size(), 2U);
    EXPECT_EQ(number_of(batches[0]), 10 + 2 * step);
    EXPECT_EQ(number_of(batches[1]), 11 + 2 * step);
    EXPECT_EQ(source.position(), 12 + 2 * step);
  }
}

TEST(BatchSource, ThrowsWhatTheTaskThrows) {
  const Counting task(1);
  BatchSource source(task, 1, 0, /*ahead=*/false);
  EXPECT_EQ(number_of(source.next()[0]), 0);
  EXPECT_THROW(source.next(), Error);
}

}  // namespace
}  // namespace reformer
