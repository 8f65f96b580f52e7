#include "cli/serve/attention_view.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "reformer/device/device.h"
#include "reformer/generate/decoded_attention.h"
#include "reformer/kernels/interval_attention.h"

namespace reformer::cli {
namespace {

// Of queries and keys that are kept: longer texts keep one layer.
constexpr int64_t kMostBytes = int64_t{1} << 29;

[[noreturn]] void refuse(const std::string& key, const std::string& sentence) {
  throw RequestError(400, key, sentence);
}

// The inputs of a text's predictions, [1, length]: shifted behind the start.
at::Tensor inputs_of(const std::vector<int64_t>& tokens, int64_t start) {
  auto inputs = at::empty({1, std::ssize(tokens)}, at::kLong);
  auto* to = inputs.mutable_data_ptr<int64_t>();
  *to = start;
  std::copy(tokens.begin(), tokens.end() - 1, to + 1);
  return inputs;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

at::Tensor on_cpu(const at::Tensor& x) {
  return x.defined() ? x[0].to(at::kFloat).cpu().contiguous() : x;
}

}  // namespace

void AttentionView::check(const AttentionRequest& request) const {
  const auto& config = model_.config();
  const auto within = [](const char* key, const std::optional<int64_t>& given,
                         int64_t count) {
    if (given && *given >= count) {
      refuse(key, std::string(key) + " " + std::to_string(*given) +
                      " is not there: the model has 0 to " +
                      std::to_string(count - 1));
    }
  };
  auto lsh = config.lsh;
  if (request.rounds > 0) lsh.rounds = request.rounds;
  within("layer", request.layer, config.model.layers);
  within("head", request.head, config.model.heads);
  within("round", request.round, std::min<int64_t>(bucket_rounds(lsh), 63));
  for (const int64_t token : request.tokens) {
    if (token < 0 || token >= config.model.vocabulary) {
      refuse("tokens", "tokens: " + std::to_string(token) +
                           " is no token of this model, which has 0 to " +
                           std::to_string(config.model.vocabulary - 1));
    }
  }
  if (!request.buckets) return;
  if (!request.layer || !request.head || !request.round) {
    refuse("buckets",
           "buckets are those of one layer, head and round: all "
           "three are required");
  }
  const auto& layer =
      model_.stack().blocks()[static_cast<size_t>(*request.layer)].attention;
  if (layer.kind() != AttentionKind::kLsh ||
      *request.head >= layer.hashed_heads()) {
    refuse("buckets", "layer " + std::to_string(*request.layer) + ", head " +
                          std::to_string(*request.head) +
                          " does not hash: it has no buckets");
  }
}

void AttentionView::read(const AttentionRequest& request) {
  const int64_t wanted = request.position + 1;
  const bool known =
      rounds_ == request.rounds && std::ssize(tokens_) >= wanted &&
      std::equal(request.tokens.begin(),
                 request.tokens.begin() + request.position, tokens_.begin()) &&
      (only_layer_ < 0 || (request.layer && *request.layer == only_layer_));
  if (known) return;
  const auto& config = model_.config();
  const int64_t length = std::ssize(request.tokens);
  const int64_t width =
      config.model.heads * model_.stack().blocks()[0].attention.d_head();
  const bool all = length * width * config.model.layers * 8 <= kMostBytes;
  if (!all && !request.layer) {
    refuse("layer", "a layer is required: the text of " +
                        std::to_string(length) +
                        " tokens is too long to look at all at once");
  }
  tokens_.clear();
  layers_.clear();
  layers_.resize(static_cast<size_t>(config.model.layers));
  const at::NoGradGuard no_grad;
  Pass pass;
  pass.seed = static_cast<uint64_t>(config.train.seed);
  pass.rounds = request.rounds;
  const auto inputs = copied_to(inputs_of(request.tokens, model_.start_token()),
                                model_.placement().device);
  pass = model_.with_ngrams(pass, inputs);
  const auto& stack = model_.stack();
  const int64_t end = all ? stack.count() : *request.layer + 1;
  auto y = stack.begin(model_.embed(inputs, 0, length));
  stack.for_each_branch(
      end,
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        at::Tensor buckets;
        if (all || at.block == *request.layer) {
          const auto convolved = layer.convolved(layer.project(y[at.from]));
          layer.hash(convolved, pass, buckets);
          const auto turned = layer.turned(convolved);
          layers_[static_cast<size_t>(at.block)] = {
              on_cpu(turned.q), on_cpu(turned.k),
              buckets.defined() ? buckets[0].cpu().contiguous() : buckets};
        }
        if (at.block + 1 == end) return;
        layer.add_to(y[at.to], y[at.from], pass, buckets, /*scale=*/1);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        if (at.block + 1 == end) return;
        layer.add_to(y[at.to], y[at.from], pass, /*scale=*/1);
      });
  tokens_ = request.tokens;
  rounds_ = request.rounds;
  only_layer_ = all ? -1 : *request.layer;
}

// weights  [position + 1], of the inputs whose values were read
void AttentionView::add_head(int64_t block, int64_t head, int64_t position,
                             std::vector<Weight>& weights) const {
  const auto& layer =
      model_.stack().blocks()[static_cast<size_t>(block)].attention;
  const auto& kept = layers_[static_cast<size_t>(block)];
  const bool hashed =
      layer.kind() == AttentionKind::kLsh && head < layer.hashed_heads();
  std::vector<uint64_t> seen(static_cast<size_t>(position + 1), 0);
  constexpr uint64_t kNear = uint64_t{1} << 63;
  const auto earlier = earlier_positions(layer, hashed);
  for (int64_t j = earlier.begin(position);
       j < position + (earlier.itself ? 1 : 0); ++j) {
    seen[static_cast<size_t>(j)] = kNear;
  }
  if (hashed) {
    const auto of_head = kept.buckets[head];
    for (int64_t r = 0; r < of_head.size(0); ++r) {
      const auto* bucket = of_head[r].const_data_ptr<uint16_t>();
      int64_t left = layer.lsh().chunk_length;
      for (int64_t j = position - 1; j >= 0 && left > 0; --j) {
        if (bucket[j] != bucket[position]) continue;
        seen[static_cast<size_t>(j)] |= uint64_t{1} << std::min<int64_t>(r, 62);
        --left;
      }
    }
  }
  const int64_t d = layer.d_head();
  const bool shared = !kept.k.defined();
  const float* q = kept.q[head].const_data_ptr<float>() + position * d;
  const float* keys = (shared ? kept.q : kept.k)[head].const_data_ptr<float>();
  std::vector<double> score(seen.size(), -INFINITY);
  double best = -INFINITY;
  for (int64_t j = 0; j <= position; ++j) {
    const auto i = static_cast<size_t>(j);
    if (seen[i] == 0) continue;
    const float* k = keys + j * d;
    const double norm = shared ? std::sqrt(dot(k, k, d)) : std::sqrt(double(d));
    score[i] = norm > kernels::kSmallestKeyNorm ? dot(q, k, d) / norm : 0;
    best = std::max(best, score[i]);
  }
  if (best == -INFINITY) {  // who sees nobody attends to itself
    weights[static_cast<size_t>(position)].weight += 1;
    return;
  }
  double sum = 0;
  for (double& s : score) sum += s = std::exp(s - best);
  const int64_t read_after = head < layer.successor_heads() ? 1 : 0;
  for (int64_t j = 0; j <= position; ++j) {
    const auto i = static_cast<size_t>(j);
    if (seen[i] == 0) continue;
    auto& to = weights[static_cast<size_t>(std::min(position, j + read_after))];
    to.weight += score[i] / sum;
    to.rounds |= seen[i] & ~kNear;
  }
}

nlohmann::ordered_json AttentionView::answer(const AttentionRequest& request) {
  check(request);
  read(request);
  const auto& config = model_.config();
  std::vector<Weight> weights(static_cast<size_t>(request.position + 1));
  int64_t heads = 0;
  for (int64_t layer = 0; layer < config.model.layers; ++layer) {
    if (request.layer && *request.layer != layer) continue;
    for (int64_t head = 0; head < config.model.heads; ++head) {
      if (request.head && *request.head != head) continue;
      add_head(layer, head, request.position, weights);
      ++heads;
    }
  }
  std::vector<int64_t> order;
  for (int64_t j = 0; j <= request.position; ++j) {
    const auto& weight = weights[static_cast<size_t>(j)];
    const bool found =
        !request.round || ((weight.rounds >> *request.round) & 1) != 0;
    if (weight.weight > 0 && found) order.push_back(j);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return weights[static_cast<size_t>(a)].weight >
           weights[static_cast<size_t>(b)].weight;
  });
  const auto found = std::ssize(order);
  order.resize(static_cast<size_t>(std::min<int64_t>(found, kMost)));
  nlohmann::ordered_json json;
  json["object"] = "attention";
  json["position"] = request.position;
  json["heads"] = heads;
  json["found"] = found;
  json["attended"] = nlohmann::ordered_json::array();
  for (const int64_t j : order) {
    const auto& [weight, rounds] = weights[static_cast<size_t>(j)];
    // Six digits are more than a shade shows.
    const double rounded = std::round(weight / double(heads) * 1e6) / 1e6;
    json["attended"].push_back({j - 1, rounded, rounds});
  }
  if (request.buckets) {
    const auto row = layers_[static_cast<size_t>(*request.layer)]
                         .buckets[*request.head][*request.round];
    const auto* bucket = row.const_data_ptr<uint16_t>();
    // Of each token: the bucket of its input, behind the start token's.
    const auto n = std::min<int64_t>(row.size(0), request.position + 1);
    json["buckets"] = std::vector<int64_t>(bucket, bucket + n);
    json["n_buckets"] = model_.stack()
                            .blocks()[static_cast<size_t>(*request.layer)]
                            .attention.lsh()
                            .n_buckets;
  }
  return json;
}

}  // namespace reformer::cli
