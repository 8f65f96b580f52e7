#include "reformer/ops/lsh_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/ops/checks.h"
#include "reformer/ops/joined_softmax.h"
#include "reformer/ops/lsh_buckets.h"
#include "reformer/ops/lsh_intervals.h"
#include "reformer/ops/lsh_rotations.h"
#include "reformer/ops/natural_rounds.h"

namespace reformer {
namespace {

constexpr const char* kLshAttention = "lsh_attention";

void check_config(const LshConfig& config) {
  require(config.chunk_length >= 1, kLshAttention,
          ": chunk_length must be at least 1, got ", config.chunk_length);
  require(config.local_window >= 0, kLshAttention,
          ": local_window must be at least 0, got ", config.local_window);
  if (config.n_buckets != 0)
    require_bucket_count(kLshAttention, config.n_buckets);
}

int64_t bucket_count(const LshConfig& config, int64_t length) {
  return config.n_buckets != 0
             ? config.n_buckets
             : default_bucket_count(length, config.chunk_length);
}

void check_inputs(const at::Tensor& qk, const at::Tensor& v,
                  const at::Tensor& mask) {
  check_vectors(kLshAttention, "qk", qk);
  check_like(kLshAttention, "v", v, "qk", qk);
  check_mask(kLshAttention, mask, qk.device(), qk.size(0), qk.size(2));
}

// As a whole: a setting that is new must reach the backward pass, too.
struct KeptConfig : torch::CustomClassHolder {
  explicit KeptConfig(const LshConfig& kept) : config(kept) {}
  LshConfig config;
};

// One part of the heads, and what they attend by.
struct Part {
  int64_t first_head;
  int64_t heads;
  int64_t successor_heads;
  IntervalRounds rounds;

  at::Tensor of(const at::Tensor& x) const {
    return x.narrow(1, first_head, heads);
  }
};

Part hashed_part(const at::Tensor& buckets, int64_t successor_heads,
                 IntervalRounds rounds) {
  return {0, buckets.size(1), successor_heads, std::move(rounds)};
}

Part near_part(const at::Tensor& qk, const at::Tensor& buckets,
               IntervalRounds rounds) {
  const int64_t first = buckets.size(1);
  return {first, qk.size(1) - first, 0, std::move(rounds)};
}

IntervalRounds rounds_of_near(const at::Tensor& qk, const LshConfig& config,
                              const at::Tensor& mask, int64_t near_window) {
  return natural_rounds(qk.size(2), {Window::kTrailing, near_window},
                        config.causal, mask, qk.device());
}

// Of the heads that have buckets, `together` rounds at a time.
at::Tensor attended_in_groups(const at::Tensor& qk, const at::Tensor& v,
                              const at::Tensor& buckets,
                              const LshConfig& config, const at::Tensor& mask,
                              int64_t successor_heads) {
  const int64_t rounds = buckets.size(2);
  const int64_t together = rounds_together(config, rounds);
  JoinedSoftmax joined;
  for (int64_t first = 0; first < rounds; first += together) {
    const auto some = buckets
                          .view(at::kShort)  // which is copied on any device
                          .narrow(2, first, std::min(together, rounds - first))
                          .contiguous()
                          .view(at::kUInt16);
    const auto part =
        hashed_part(some, successor_heads, lsh_rounds(some, config, mask));
    joined.add(interval_attention_forward(
        part.of(qk), {}, part.of(v), part.rounds, mask, part.successor_heads));
  }
  return joined.output();
}

// More rounds than in training, in groups; without gradients.
at::Tensor attend_in_groups(const at::Tensor& qk, const at::Tensor& v,
                            const at::Tensor& buckets, const LshConfig& config,
                            const at::Tensor& mask, int64_t successor_heads,
                            int64_t near_window) {
  const at::NoGradGuard no_grad;
  const auto qk_rows = with_contiguous_rows(qk);
  const auto v_rows = with_contiguous_rows(v);
  const auto output = empty_rows_like(qk_rows);
  output.narrow(1, 0, buckets.size(1))
      .copy_(attended_in_groups(qk_rows, v_rows, buckets, config, mask,
                                successor_heads));
  if (buckets.size(1) == qk.size(1)) return output;
  const auto near =
      near_part(qk, buckets, rounds_of_near(qk, config, mask, near_window));
  interval_attention_forward(near.of(qk_rows), {}, near.of(v_rows), near.rounds,
                             mask, /*successor_heads=*/0, near.of(output));
  return output;
}

// Output and gradients of all parts lie in one tensor each, and nobody has to
// put them together.
class LshAttention : public torch::autograd::Function<LshAttention> {
 public:
  // Of hashed heads a CPU keeps the buckets alone for the backward pass, 2
  // bytes a round, and sorts them again there, which takes a hundredth of the
  // attention's time. On a GPU that would be a twentieth, and the sorted rounds
  // are kept, 16 bytes each: a reversible layer's backward pass follows its
  // forward pass at once. Those of near heads are shared by all of them.
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& qk, const at::Tensor& v,
                            const at::Tensor& buckets, const LshConfig& config,
                            const std::optional<at::Tensor>& maybe_mask,
                            int64_t successor_heads, int64_t near_window) {
    const auto& mask = *maybe_mask;
    const auto qk_rows = with_contiguous_rows(qk);
    const auto v_rows = with_contiguous_rows(v);
    const auto output = empty_rows_like(qk_rows);
    const auto attend = [&](const Part& part) {
      return interval_attention_forward(part.of(qk_rows), {}, part.of(v_rows),
                                        part.rounds, mask, part.successor_heads,
                                        part.of(output));
    };
    const auto rounds = lsh_rounds(buckets, config, mask);
    const auto far = attend(hashed_part(buckets, successor_heads, rounds));
    AttentionResult near;
    IntervalRounds near_rounds;
    if (buckets.size(1) < qk.size(1)) {
      near_rounds = rounds_of_near(qk, config, mask, near_window);
      near = attend(near_part(qk, buckets, near_rounds));
    }
    const auto kept = qk.is_cuda() ? rounds : IntervalRounds{};
    context->save_for_backward(
        {qk, v, buckets, mask, output, far.lse, far.softmax, kept.order,
         kept.place, kept.interval, near.lse, near.softmax, near_rounds.order,
         near_rounds.place, near_rounds.interval});
    context->saved_data["config"] =
        c10::IValue::make_capsule(c10::make_intrusive<KeptConfig>(config));
    context->saved_data["successor_heads"] = successor_heads;
    return output;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      torch::autograd::variable_list d_outputs) {
    require(!at::GradMode::is_enabled(), kLshAttention,
            ": second derivatives are not available");
    auto& data = context->saved_data;
    const auto kept = c10::static_intrusive_pointer_cast<KeptConfig>(
        data["config"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto& qk = saved[0];
    const auto& v = saved[1];
    const auto& buckets = saved[2];
    const auto& mask = saved[3];
    const auto& output = saved[4];
    const auto qk_rows = with_contiguous_rows(qk);
    const auto v_rows = with_contiguous_rows(v);
    const AttentionGradients gradients{
        empty_rows_like(qk_rows), {}, empty_rows_like(v_rows)};
    const auto go_back = [&](const Part& part, const at::Tensor& lse,
                             const at::Tensor& softmax) {
      interval_attention_backward(
          part.of(qk_rows), {}, part.of(v_rows), part.rounds, mask,
          {part.of(output), lse, softmax}, part.of(d_outputs[0]),
          part.successor_heads,
          {part.of(gradients.q), {}, part.of(gradients.v)});
    };
    const auto rounds = saved[7].defined()
                            ? IntervalRounds{saved[7], saved[8], saved[9]}
                            : lsh_rounds(buckets, kept->config, mask);
    go_back(hashed_part(buckets, data["successor_heads"].toInt(), rounds),
            saved[5], saved[6]);
    if (buckets.size(1) < qk.size(1)) {
      go_back(near_part(qk, buckets, {saved[12], saved[13], saved[14]}),
              saved[10], saved[11]);
    }
    return {gradients.q,  gradients.v,  at::Tensor(), at::Tensor(),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor lsh_attention_buckets(const at::Tensor& qk, const LshConfig& config,
                                 const HashKey& key, int64_t first_head) {
  check_vectors(kLshAttention, "qk", qk);
  check_config(config);
  require(config.rounds >= 1, kLshAttention,
          ": rounds must be at least 1, got ", config.rounds);
  const at::NoGradGuard no_grad;
  const int64_t n_buckets = bucket_count(config, qk.size(2));
  const int64_t heads = qk.size(1);
  const auto rotations = lsh_rotations(key, first_head + heads, config.rounds,
                                       qk.size(3), n_buckets, qk.device())
                             .narrow(0, first_head, heads);
  return lsh_buckets(qk.detach(), rotations, n_buckets);
}

IntervalRounds lsh_rounds(const at::Tensor& buckets, const LshConfig& config,
                          const at::Tensor& mask) {
  check_bucket_shape(kLshAttention, buckets);
  check_config(config);
  check_mask(kLshAttention, mask, buckets.device(), buckets.size(0),
             buckets.size(3));
  const int64_t n_buckets = bucket_count(config, buckets.size(3));
  check_bucket_range(kLshAttention, buckets, n_buckets, mask);
  std::vector<WindowRule> rules(buckets.size(2),
                                WindowRule{config.window, config.chunk_length});
  if (config.local_window > 0) {
    rules.insert(rules.begin(), {Window::kTrailing, config.local_window});
  }
  const auto made =
      windowed_rounds(buckets, n_buckets, rules, config.causal, mask);
  return {made.sorted.order, made.sorted.place, made.interval};
}

at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const at::Tensor& buckets, const LshConfig& config,
                         const at::Tensor& mask, int64_t successor_heads,
                         int64_t near_window) {
  check_inputs(qk, v, mask);
  check_successor_heads(kLshAttention, successor_heads, qk);
  check_config(config);
  check_bucket_shape(kLshAttention, buckets);
  require(near_window >= 0, kLshAttention,
          ": near_window must be at least 0, got ", near_window);
  const bool some_are_near = near_window > 0 && buckets.size(1) < qk.size(1);
  require(buckets.size(0) == qk.size(0) &&
              (buckets.size(1) == qk.size(1) || some_are_near) &&
              buckets.size(3) == qk.size(2),
          kLshAttention, ": buckets must be [", qk.size(0), ", ", qk.size(1),
          ", rounds, ", qk.size(2),
          "] for this qk (fewer heads where there is a ",
          "near_window), got sizes ", buckets.sizes());
  require(successor_heads <= buckets.size(1), kLshAttention,
          ": successor_heads must be among those that have buckets, ",
          buckets.size(1), ", got ", successor_heads);
  require(buckets.device() == qk.device(), kLshAttention,
          ": buckets must be on the device of qk, ", qk.device().str(),
          ", got ", buckets.device().str());
  const int64_t rounds = buckets.size(2);
  if (config.more_rounds == MoreRounds::kGroups) {
    require(config.rounds >= 1, kLshAttention,
            ": rounds must be at least 1 where more_rounds is groups, got ",
            config.rounds);
  }
  if (rounds_together(config, rounds) < rounds) {
    require(!at::GradMode::is_enabled() ||
                (!qk.requires_grad() && !v.requires_grad()),
            kLshAttention,
            ": gradients take no more than lsh.rounds = ", config.rounds,
            " rounds where lsh.more_rounds is groups, got ", rounds);
    return attend_in_groups(qk, v, buckets, config, mask, successor_heads,
                            near_window);
  }
  // Optional, because autograd takes no undefined tensors as arguments.
  return LshAttention::apply(qk, v, buckets, config, std::optional(mask),
                             successor_heads, near_window);
}

at::Tensor lsh_attention(const at::Tensor& qk, const at::Tensor& v,
                         const LshConfig& config, const HashKey& key,
                         const at::Tensor& mask, int64_t successor_heads) {
  check_inputs(qk, v, mask);
  return lsh_attention(qk, v, lsh_attention_buckets(qk, config, key), config,
                       mask, successor_heads);
}

}  // namespace reformer
