// What the settings of a model and its training may choose from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reformer/config/choice.h"

namespace reformer {

enum class AttentionKind {
  kFull,
  kFullSharedQk,
  kLocal,
  kLsh,
  kLocalSeparateQk,  // these two are Hugging Face's
  kLshHuggingface
};
// Whether keys are a projection of their own, not shared with the queries.
constexpr bool has_own_keys(AttentionKind kind) {
  return kind == AttentionKind::kFull ||
         kind == AttentionKind::kLocalSeparateQk;
}

// Whether each position sees those near it.
constexpr bool is_local(AttentionKind kind) {
  return kind == AttentionKind::kLocal ||
         kind == AttentionKind::kLocalSeparateQk;
}

// Whether queries are hashed into buckets.
constexpr bool hashes(AttentionKind kind) {
  return kind == AttentionKind::kLsh || kind == AttentionKind::kLshHuggingface;
}

enum class BlockKind { kReversible, kStored, kResidual };
enum class ActivationKind { kRelu, kGelu, kGeluErf, kReluSquared };
enum class PositionKind { kLearned, kAxial, kSinusoid, kRotary };
enum class OptimizerKind { kAdafactor, kAdam, kAdamw, kMuon };
enum class ScheduleKind { kConstant, kRsqrt, kCosine };
enum class Precision { kAuto, kFloat32, kBfloat16 };
enum class GraphUse { kAuto, kOn, kOff };
enum class CommunicationKind { kAuto, kGloo, kNccl };
enum class TaskKind {
  kText,
  kImages,
  kDuplication,
  kRecall,
  kNone,
  kTranslation,
  kTranslationToy
};

template <>
struct ChoiceNames<AttentionKind> {
  static constexpr std::string_view key = "model.attention";
  static constexpr std::string_view names[] = {
      "full", "full_shared_qk",    "local",
      "lsh",  "local_separate_qk", "lsh_huggingface"};
};
template <>
struct ChoiceNames<BlockKind> {
  static constexpr std::string_view key = "model.block";
  static constexpr std::string_view names[] = {"reversible", "stored",
                                               "residual"};
};
template <>
struct ChoiceNames<ActivationKind> {
  static constexpr std::string_view key = "model.activation";
  static constexpr std::string_view names[] = {"relu", "gelu", "gelu_erf",
                                               "relu_squared"};
};
template <>
struct ChoiceNames<PositionKind> {
  static constexpr std::string_view key = "model.positions";
  static constexpr std::string_view names[] = {"learned", "axial", "sinusoid",
                                               "rotary"};
};
template <>
struct ChoiceNames<OptimizerKind> {
  static constexpr std::string_view key = "train.optimizer";
  static constexpr std::string_view names[] = {"adafactor", "adam", "adamw",
                                               "muon"};
};
template <>
struct ChoiceNames<ScheduleKind> {
  static constexpr std::string_view key = "train.schedule";
  static constexpr std::string_view names[] = {"constant", "rsqrt", "cosine"};
};
template <>
struct ChoiceNames<Precision> {
  static constexpr std::string_view key = "train.precision";
  static constexpr std::string_view names[] = {"auto", "float32", "bfloat16"};
};
template <>
struct ChoiceNames<GraphUse> {
  static constexpr std::string_view key = "train.cuda_graph";
  static constexpr std::string_view names[] = {"auto", "on", "off"};
};
template <>
struct ChoiceNames<CommunicationKind> {
  static constexpr std::string_view key = "distributed.backend";
  static constexpr std::string_view names[] = {"auto", "gloo", "nccl"};
};
template <>
struct ChoiceNames<TaskKind> {
  static constexpr std::string_view key = "task.name";
  static constexpr std::string_view names[] = {
      "text", "images",      "duplication",    "recall",
      "none", "translation", "translation-toy"};
};

// One kind of attention for each layer, repeated over them: "local,lsh".
class AttentionKinds {
 public:
  explicit(false) AttentionKinds(AttentionKind all) : kinds_{all} {}
  // Names between commas; throws Error for an unknown one, as Choice does.
  explicit(false)
      AttentionKinds(const std::string& names,
                     std::string_view key = ChoiceNames<AttentionKind>::key);
  explicit(false) AttentionKinds(const char* names)
      : AttentionKinds(std::string(names)) {}

  AttentionKind of_layer(int64_t layer) const {
    return kinds_[static_cast<std::size_t>(layer) % kinds_.size()];
  }
  bool contains(AttentionKind kind) const;
  int64_t count() const { return static_cast<int64_t>(kinds_.size()); }
  std::string names() const;
  bool operator==(const AttentionKinds&) const = default;

 private:
  std::vector<AttentionKind> kinds_;  // never empty
};

std::ostream& operator<<(std::ostream& out, const AttentionKinds& kinds);

}  // namespace reformer
