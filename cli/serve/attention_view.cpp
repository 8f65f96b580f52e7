#include "cli/serve/attention_view.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "reformer/base/interruption.h"
#include "reformer/device/device.h"
#include "reformer/generate/attention_cache.h"
#include "reformer/model/parts.h"

namespace reformer::cli {
namespace {

// Positions that are projected before somebody else has a turn.
constexpr int64_t kPart = 16384;

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

at::Tensor on_cpu(const at::Tensor& x) {
  return x.defined() ? x[0].to(at::kFloat).cpu().contiguous() : x;
}

Projected project(const AttentionLayer& layer, const at::Tensor& x) {
  std::vector<at::Tensor> q, k, v;
  for_each_part(x.size(1), kPart, [&](int64_t at, int64_t n) {
    interruption_point();
    const auto part = layer.project(x.narrow(1, at, n));
    q.push_back(part.q);
    if (part.k.defined()) k.push_back(part.k);
    v.push_back(part.v);
  });
  return {at::cat(q, 2), k.empty() ? at::Tensor() : at::cat(k, 2),
          at::cat(v, 2)};
}

// buckets: undefined ones of a layer that hashes are left there.
LayerRows rows_of(const AttentionLayer& layer, const at::Tensor& x,
                  const Pass& pass, at::Tensor& buckets) {
  const auto convolved = layer.convolved(project(layer, x));
  layer.hash(convolved, pass, buckets);
  const auto turned = layer.turned(convolved);
  return {on_cpu(turned.q), on_cpu(turned.k),
          buckets.defined() ? buckets[0].cpu().contiguous() : buckets};
}

// read_after: a key's value is that of the position after it.
void add(const std::vector<AttendedPosition>& attended, bool read_after,
         std::vector<AttendedPosition>& weights) {
  for (size_t i = 0; i < attended.size(); ++i) {
    const size_t at = std::min(i + (read_after ? 1 : 0), attended.size() - 1);
    weights[at].weight += attended[i].weight;
    weights[at].rounds |= attended[i].rounds;
  }
}

}  // namespace

AttentionView::AttentionView(const LanguageModel& model, int64_t most_bytes)
    : model_(model),
      most_bytes_(most_bytes),
      later_tokens_count_(model.config().model.attention.contains(
          AttentionKind::kLshHuggingface)) {}

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

bool AttentionView::keeps_all(int64_t length) const {
  const auto& model = model_.config().model;
  const int64_t width =
      model.heads * model_.stack().blocks()[0].attention.d_head();
  return length * width * model.layers * 2 * int64_t{sizeof(float)} <=
         most_bytes_;
}

bool AttentionView::keeps(const AttentionRequest& request) const {
  const int64_t wanted = request.position + 1;
  const int64_t length = std::ssize(tokens_);
  return rounds_ == request.rounds &&
         (later_tokens_count_ ? length == wanted : length >= wanted) &&
         std::equal(request.tokens.begin(),
                    request.tokens.begin() + request.position,
                    tokens_.begin()) &&
         (only_layer_ < 0 || (request.layer && *request.layer == only_layer_));
}

void AttentionView::forget() {
  tokens_.clear();
  layers_.clear();
}

// done(layer, rows) is told what each layer, or the only one that is wanted,
// computed.
void AttentionView::read(const std::vector<int64_t>& tokens,
                         const AttentionRequest& request,
                         const std::optional<int64_t>& only,
                         const Read& done) const {
  const at::NoGradGuard no_grad;
  const auto& config = model_.config();
  const int64_t length = std::ssize(tokens);
  Pass pass;
  pass.seed = static_cast<uint64_t>(config.train.seed);
  pass.rounds = request.rounds;
  const auto inputs = copied_to(inputs_of(tokens, model_.start_token()),
                                model_.placement().device);
  pass = model_.with_ngrams(pass, inputs);
  const auto& stack = model_.stack();
  const int64_t end = only ? *only + 1 : stack.count();
  auto y = stack.begin(model_.embed(inputs, 0, length));
  stack.for_each_branch(
      end,
      [&](const BranchPlace& at, const AttentionLayer& layer) {
        interruption_point();
        at::Tensor buckets;
        if (!only || at.block == *only) {
          done(at.block, rows_of(layer, y[at.from], pass, buckets));
        }
        if (at.block + 1 == end) return;
        AttentionCache cache(layer, 1, pass, model_.placement());
        cache.read(y[at.from], {length}, pass.ngrams, buckets, y[at.to]);
      },
      [&](const BranchPlace& at, const FeedForward& layer) {
        if (at.block + 1 == end) return;
        for_each_part(length, layer.chunk(1), [&](int64_t from, int64_t n) {
          interruption_point();
          layer.add_to(y[at.to].narrow(1, from, n),
                       y[at.from].narrow(1, from, n), pass, /*scale=*/1);
        });
      });
}

// Those that are asked for.
void AttentionView::for_each_layer(const AttentionRequest& request,
                                   const Read& look) {
  if (!keeps(request)) {
    forget();
    auto tokens = request.tokens;
    if (later_tokens_count_) {
      tokens.resize(static_cast<size_t>(request.position + 1));
    }
    const bool all = keeps_all(std::ssize(tokens));
    if (!all && !request.layer) {
      tokens.resize(static_cast<size_t>(request.position + 1));
      return read(tokens, request, {}, look);
    }
    std::vector<LayerRows> layers(model_.stack().blocks().size());
    read(tokens, request, all ? std::optional<int64_t>() : request.layer,
         [&](int64_t layer, const LayerRows& rows) {
           layers[static_cast<size_t>(layer)] = rows;
         });
    layers_ = std::move(layers);
    tokens_ = std::move(tokens);
    rounds_ = request.rounds;
    only_layer_ = all ? -1 : *request.layer;
  }
  for (int64_t layer = 0; layer < std::ssize(layers_); ++layer) {
    if (request.layer && *request.layer != layer) continue;
    look(layer, layers_[static_cast<size_t>(layer)]);
  }
}

nlohmann::ordered_json AttentionView::answer(const AttentionRequest& request) {
  check(request);
  const auto& config = model_.config();
  // Of the inputs whose values were read.
  std::vector<AttendedPosition> weights(
      static_cast<size_t>(request.position + 1));
  at::Tensor buckets;  // of the round
  int64_t heads = 0;
  for_each_layer(request, [&](int64_t block, const LayerRows& rows) {
    const auto& layer =
        model_.stack().blocks()[static_cast<size_t>(block)].attention;
    for (int64_t head = 0; head < config.model.heads; ++head) {
      if (request.head && *request.head != head) continue;
      interruption_point();
      const bool after = head < layer.successor_heads();
      add(attended_positions(layer, rows, head, request.position), after,
          weights);
      ++heads;
    }
    if (request.buckets) buckets = rows.buckets[*request.head][*request.round];
  });
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
    const auto* bucket = buckets.const_data_ptr<uint16_t>();
    // Of each token: the bucket of its input, behind the start token's.
    const auto n = std::min<int64_t>(buckets.size(0), request.position + 1);
    json["buckets"] = std::vector<int64_t>(bucket, bucket + n);
    json["n_buckets"] = model_.stack()
                            .blocks()[static_cast<size_t>(*request.layer)]
                            .attention.lsh()
                            .n_buckets;
  }
  return json;
}

}  // namespace reformer::cli
