#include "reformer/generate/key_value_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "reformer/base/errors.h"
#include "tests/support/cases.h"

namespace reformer {
namespace {

using kernels::kPagePositions;

constexpr int64_t kHeads = 2;
constexpr int64_t kWidth = 16;
constexpr int64_t kFar = 100 * kPagePositions;  // with a reach pages come one
                                                // by one, as they do on a GPU

KeyValueCache cache_of(int64_t batch, int64_t reach = 0) {
  return KeyValueCache(
      {batch, kHeads, kWidth, /*shared_qk=*/false, at::kFloat, reach});
}

// The places of a row's pages, as far as the table goes.
std::vector<void*> listed(const KeyValueCache& cache, int64_t row) {
  const auto table = cache.pages<float>();
  const auto* first = table.row(row).pages;
  return {first, first + table.capacity};
}

TEST(KeyValueCache, PagesJoinTheSameTableUntilItIsFull) {
  auto cache = cache_of(1, kFar);
  int64_t capacity = 0;
  const void* place = nullptr;
  std::vector<void*> before;
  for (int64_t pages = 1; pages <= 33; ++pages) {
    const bool moved = cache.extend({kPagePositions});
    EXPECT_EQ(moved, pages > capacity) << pages;
    if (moved) {
      capacity = capacity == 0 ? 1 : 2 * capacity;
      place = cache.pages<float>().pages;
    }
    ASSERT_EQ(cache.pages<float>().capacity, capacity);
    EXPECT_EQ(cache.pages<float>().pages, place);
    EXPECT_EQ(cache.room(), capacity * kPagePositions);
    const auto now = listed(cache, 0);
    for (int64_t i = 0; i < capacity; ++i) {
      EXPECT_EQ(now[i] != nullptr, i < pages);
    }
    EXPECT_TRUE(
        std::equal(now.begin(), now.begin() + pages - 1, before.begin()))
        << "a page moved";
    before = now;
  }
}

TEST(KeyValueCache, ShorterRowsGrowWithinTheTableOfTheLongest) {
  auto cache = cache_of(2, kFar);
  EXPECT_TRUE(cache.extend({5 * kPagePositions, 1}));
  EXPECT_EQ(cache.pages<float>().capacity, 8);
  const auto longest = listed(cache, 0);
  for (int64_t page = 1; page < 8; ++page) {
    EXPECT_EQ(listed(cache, 1)[page], nullptr);
    EXPECT_FALSE(cache.extend({0, kPagePositions}));
    EXPECT_NE(listed(cache, 1)[page], nullptr);
    EXPECT_EQ(listed(cache, 0), longest);
  }
  EXPECT_TRUE(cache.extend({0, kPagePositions}));
}

TEST(KeyValueCache, PagesOutOfReachServeAgain) {
  auto cache = cache_of(1, /*reach=*/2 * kPagePositions + 1);
  cache.extend({7 * kPagePositions});
  const auto pages = listed(cache, 0);
  for (int64_t i = 3; i < 7; ++i) EXPECT_EQ(pages[i], pages[i - 3]);
  EXPECT_NE(pages[0], pages[1]);
}

TEST(KeyValueCache, ExtendedAndWrittenIsAppended) {
  const std::vector<int64_t> counts = {1500, 3};
  const auto k = normal({2, kHeads, 1500, kWidth}, 1);
  const auto v = normal({2, kHeads, 1500, kWidth}, 2);
  auto cache = cache_of(2);
  cache.append(k, v, counts);
  const auto next_k = normal({2, kHeads, 1, kWidth}, 3);
  const auto next_v = normal({2, kHeads, 1, kWidth}, 4);
  cache.extend({1, 1});
  cache.write(next_k, next_v, {1, 1});
  EXPECT_EQ(cache.lengths(), (std::vector<int64_t>{1501, 4}));
  const auto table = cache.pages<float>();
  const auto expect_row = [&](const at::Tensor& all, int64_t row, int64_t head,
                              int64_t at, const float* found) {
    const float* expected = all.const_data_ptr<float>() +
                            ((row * kHeads + head) * all.size(2) + at) * kWidth;
    EXPECT_TRUE(std::equal(expected, expected + kWidth, found))
        << row << ", " << head << ", " << at;
  };
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const auto pages = table.row(row);
      for (int64_t at = 0; at < counts[row]; ++at) {
        expect_row(k, row, head, at, pages.key(head, at));
        expect_row(v, row, head, at, pages.value(head, at));
      }
      expect_row(next_k, row, head, 0, pages.key(head, counts[row]));
      expect_row(next_v, row, head, 0, pages.value(head, counts[row]));
    }
  }
}

TEST(KeyValueCache, RefusesToWriteMoreThanWasExtended) {
  auto cache = cache_of(1);
  const auto k = normal({1, kHeads, 4, kWidth}, 1);
  cache.extend({3});
  EXPECT_THROW(cache.write(k, k, {4}), Error);
  cache.write(k, k, {3});
  EXPECT_THROW(cache.append(k, k, {5}), Error);
  EXPECT_EQ(cache.lengths()[0], 3);
}

}  // namespace
}  // namespace reformer
