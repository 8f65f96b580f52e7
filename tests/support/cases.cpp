#include "tests/support/cases.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "reformer/config/bucket_count.h"

namespace reformer {
namespace {

// (factor, value, another factor, its value), the smaller factor first.
using Pair = std::tuple<int, int, int, int>;

Pair pair_of(int f, int x, int g, int y) {
  return f < g ? Pair{f, x, g, y} : Pair{g, y, f, x};
}

std::set<Pair> all_pairs(const std::vector<int>& values) {
  std::set<Pair> pairs;
  const int factors = static_cast<int>(values.size());
  for (int f = 0; f < factors; ++f) {
    for (int g = f + 1; g < factors; ++g) {
      for (int x = 0; x < values[f]; ++x) {
        for (int y = 0; y < values[g]; ++y) pairs.insert({f, x, g, y});
      }
    }
  }
  return pairs;
}

// The value of factor `f` that meets most missing pairs with what `row` has.
int best_value(const std::vector<int>& values, const std::vector<int>& row,
               const std::set<Pair>& missing, int f, int start) {
  int best = start;
  int most = -1;
  for (int step = 0; step < values[f]; ++step) {
    const int x = (start + step) % values[f];
    int met = 0;
    for (int g = 0; g < static_cast<int>(row.size()); ++g) {
      if (g == f || row[g] < 0) continue;
      met += static_cast<int>(missing.count(pair_of(f, x, g, row[g])));
    }
    if (met > most) {
      most = met;
      best = x;
    }
  }
  return best;
}

at::Generator generator(uint64_t seed) {
  return at::detail::createCPUGenerator(seed);
}

}  // namespace

std::vector<std::vector<int>> pairwise_cover(const std::vector<int>& values) {
  std::mt19937_64 random(1);
  auto missing = all_pairs(values);
  std::vector<std::vector<int>> rows;
  while (!missing.empty()) {
    const auto [f, x, g, y] = *missing.begin();
    std::vector<int> row(values.size(), -1);
    row[f] = x;
    row[g] = y;
    for (int h = 0; h < static_cast<int>(values.size()); ++h) {
      if (row[h] >= 0) continue;
      row[h] = best_value(values, row, missing, h,
                          static_cast<int>(random() % values[h]));
    }
    for (int h = 0; h < static_cast<int>(values.size()); ++h) {
      for (int i = 0; i < h; ++i) missing.erase({i, row[i], h, row[h]});
    }
    rows.push_back(row);
  }
  return rows;
}

std::string name_of(Queries queries) {
  switch (queries) {
    case Queries::kRandom:
      return "random";
    case Queries::kClustered:
      return "clustered";
    case Queries::kIdentical:
      return "identical";
    case Queries::kZero:
      return "zero";
    case Queries::kSomeZero:
      return "some zero";
  }
  return "unknown";
}

std::string name_of(Padding padding) {
  switch (padding) {
    case Padding::kNone:
      return "none";
    case Padding::kRight:
      return "right";
    case Padding::kLeft:
      return "left";
    case Padding::kScattered:
      return "scattered";
  }
  return "unknown";
}

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, generator(seed), at::kFloat);
}

at::Tensor by_positions(const at::Tensor& x) {
  return x.transpose(1, 2).contiguous().transpose(1, 2);
}

at::Tensor make_queries(Queries queries, at::IntArrayRef sizes, uint64_t seed) {
  const auto random = normal(sizes, seed);
  const int64_t length = sizes[2];
  switch (queries) {
    case Queries::kRandom:
      return random;
    case Queries::kClustered: {
      const auto directions = normal({4, sizes[3]}, seed + 1);
      const auto which = at::randint(4, {sizes[0] * sizes[1] * length},
                                     generator(seed + 2), at::kLong);
      return directions.index_select(0, which).view(sizes) + 0.1 * random;
    }
    case Queries::kIdentical:
      return random.narrow(2, 0, 1).expand(sizes).contiguous();
    case Queries::kZero:
      return at::zeros(sizes, at::kFloat);
    case Queries::kSomeZero: {
      const auto third = at::arange(length, at::kLong).remainder(3) == 0;
      return random.masked_fill(third.unsqueeze(-1), 0);
    }
  }
  return random;
}

at::Tensor make_mask(Padding padding, int64_t batch, int64_t length) {
  if (padding == Padding::kNone) return {};
  auto mask = at::ones({batch, length}, at::kBool);
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t padded = (length + 1) / (3 + row);
    auto own = mask.select(0, row);
    if (padding == Padding::kRight) {
      own.narrow(0, length - padded, padded).fill_(false);
    } else if (padding == Padding::kLeft) {
      own.narrow(0, 0, padded).fill_(false);
    } else {
      own.copy_(at::randint(10, {length}, generator(row), at::kLong) >= 3);
    }
  }
  return mask;
}

AttentionInputs make_inputs(Queries queries, Padding padding,
                            at::IntArrayRef sizes, uint64_t seed) {
  AttentionInputs inputs{make_queries(queries, sizes, seed),
                         {},
                         normal(sizes, seed + 10),
                         normal(sizes, seed + 20),
                         make_mask(padding, sizes[0], sizes[2])};
  if (!inputs.mask.defined()) return inputs;
  const auto padded = inputs.mask.logical_not().unsqueeze(1).unsqueeze(-1);
  for (auto* x : {&inputs.q, &inputs.v, &inputs.d_output}) {
    x->masked_fill_(padded, std::numeric_limits<float>::quiet_NaN());
  }
  return inputs;
}

std::string LshCase::name() const {
  std::ostringstream name;
  name << "length " << length << ", d_head " << d_head << ", " << config.rounds
       << " rounds, chunk_length " << config.chunk_length << ", "
       << config.n_buckets << " buckets, window " << name_of(config.window)
       << ", local_window " << config.local_window
       << (config.causal ? ", causal" : ", not causal") << ", queries "
       << name_of(queries) << ", padding " << name_of(padding) << ", "
       << successor_heads << " successor heads, seed " << seed;
  return name.str();
}

AttentionInputs LshCase::inputs() const {
  auto inputs =
      make_inputs(queries, padding, {batch, heads, length, d_head}, seed);
  inputs.successor_heads = successor_heads;
  return inputs;
}

std::vector<LshCase> lsh_cases() {
  const std::vector<int64_t> lengths{1, 2, 33, 127, 128, 129, 1000, 4103};
  const std::vector<int64_t> rounds{1, 2, 4, 8};
  const std::vector<int64_t> local_windows{0, 1, 50, 128};
  const std::vector<int64_t> d_heads{40, 64, 128};
  const std::vector<int64_t> chunk_lengths{16, 32, 128};
  std::vector<LshCase> cases;
  for (const auto& row : pairwise_cover({8, 4, 4, 3, 3, 2, 2, 4, 5, 2})) {
    LshCase lsh;
    lsh.length = lengths[row[0]];
    // The reference is quadratic: the long ones are few and alone.
    lsh.batch = lsh.length > 200 ? 1 : 2;
    lsh.heads = lsh.length > 200 ? 1 : 3;
    lsh.config.rounds = rounds[row[1]];
    lsh.config.local_window = local_windows[row[2]];
    lsh.d_head = d_heads[row[3]];
    lsh.config.chunk_length = chunk_lengths[row[4]];
    lsh.config.causal = row[5] == 1;
    lsh.config.window = row[6] == 1 ? Window::kTrailing : Window::kChunk;
    lsh.padding = static_cast<Padding>(row[7]);
    lsh.queries = static_cast<Queries>(row[8]);
    lsh.successor_heads = row[9] == 1 ? (lsh.heads + 1) / 2 : 0;
    lsh.config.n_buckets =
        default_bucket_count(lsh.length, lsh.config.chunk_length);
    lsh.seed = 100 * (cases.size() + 1);
    cases.push_back(lsh);
  }
  return cases;
}

}  // namespace reformer
