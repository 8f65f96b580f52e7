#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/config/check_config.h"
#include "reformer/config/setting_limits.h"

namespace reformer {
namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kLargestImage = 16384;
constexpr int64_t kLongestKey = 64;
constexpr int64_t kMostToyWords = 3600;

void check_duplication(const Config& config) {
  require_within("task.alphabet", config.task.alphabet, 1);
  const int64_t needed = config.task.alphabet + 1;
  require(config.model.vocabulary >= needed,
          "model.vocabulary: at least task.alphabet + 1 = ", needed,
          " is required, got ", config.model.vocabulary);
  const int64_t length = config.train.length;
  require(length >= 4 && length % 2 == 0,
          "train.length: an even number of at least 4 is required by "
          "duplication, got ",
          length);
}

void check_recall(const Config& config) {
  const auto& task = config.task;
  require_within("task.alphabet", task.alphabet, 2, kLargest / 2);
  require_within("task.key_length", task.key_length, 1, kLongestKey);
  require(config.model.vocabulary >= 2 * task.alphabet,
          "model.vocabulary: at least 2 task.alphabet = ", 2 * task.alphabet,
          " is required by recall, got ", config.model.vocabulary);
  const int64_t least = 2 * (task.key_length + 1);
  require(config.train.length >= least, "train.length: at least ", least,
          ", two keys with their values, is required by recall, got ",
          config.train.length);
  const std::vector<int64_t> factors(size_t(task.key_length), task.alphabet);
  const int64_t pairs = recall_pairs(config);
  const int64_t keys = product_up_to(pairs, factors);
  require(keys >= pairs, "task.key_length: at least ", pairs,
          " keys are required by train.length = ", config.train.length,
          ", got task.alphabet^", task.key_length, " = ", keys);
}

void check_images(const Config& config) {
  require_within("task.image_size", config.task.image_size, 1, kLargestImage);
  const int64_t length = 3 * config.task.image_size * config.task.image_size;
  require(config.train.length == length,
          "train.length: 3 task.image_size^2 = ", length,
          " is required by images, got ", config.train.length);
}

void check_language(const char* key, const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  require(!name.empty() && plain, key,
          ": a name of letters, digits, - and _ is required, got '", name, "'");
}

void check_translation(const Config& config) {
  const auto& task = config.task;
  const auto& model = config.model;
  const auto& train = config.train;
  require(model.encoder_layers > 0,
          "model.encoder_layers: at least 1 is required by ", task.name,
          ", whose source an encoder reads; got 0");
  require_within("train.batch_tokens", train.batch_tokens, 0);
  require(train.batch_tokens == 0 || train.batch_tokens >= 2 * train.length,
          "train.batch_tokens: at least 2 train.length = ", 2 * train.length,
          ", room for the longest pair, is required, got ", train.batch_tokens);
  require(train.length >= 2,
          "train.length: at least 2, a token and the end, is required by "
          "translation, got ",
          train.length);
  if (task.name == TaskKind::kTranslationToy) {
    require_within("task.alphabet", task.alphabet, 1, kMostToyWords);
    return;
  }
  check_language("task.source_language", task.source_language);
  check_language("task.target_language", task.target_language);
  require(task.source_language != task.target_language,
          "task.target_language: another than task.source_language is "
          "required, got '",
          task.target_language, "' for both");
}

}  // namespace

void check_task(const Config& config) {
  const TaskKind name = config.task.name;
  require_below_one("task.repeats", config.task.repeats);
  require(config.task.repeats == 0 || name == TaskKind::kText,
          "task.repeats: of text; 0 is required by ", config.task.name,
          ", got ", config.task.repeats);
  if (name == TaskKind::kNone) return;
  const bool pairs =
      name == TaskKind::kTranslation || name == TaskKind::kTranslationToy;
  require(pairs || config.model.encoder_layers == 0,
          "model.encoder_layers: 0 is required by ", config.task.name,
          ", which has no source for an encoder; got ",
          config.model.encoder_layers);
  if (name == TaskKind::kDuplication) {
    check_duplication(config);
    return;
  }
  if (name == TaskKind::kRecall) {
    check_recall(config);
    return;
  }
  if (pairs) {
    check_translation(config);
    return;
  }
  require(config.task.tokenizer.empty() || name == TaskKind::kText,
          "task.tokenizer: of text and translation, not of ", config.task.name);
  if (!config.task.tokenizer.empty()) return;
  require_within("task.byte_offset", config.task.byte_offset, 0, kBytes);
  require(config.task.byte_offset == 0 || name == TaskKind::kText,
          "task.byte_offset: 0 is required by ", config.task.name, ", got ",
          config.task.byte_offset);
  const int64_t tokens = kBytes + config.task.byte_offset;
  require(config.model.vocabulary >= tokens, "model.vocabulary: at least ",
          tokens, ", one for each byte, is required by ", config.task.name,
          ", got ", config.model.vocabulary);
  if (name == TaskKind::kImages) check_images(config);
}

}  // namespace reformer
