#include "cli/eval/evaluated_run.h"

#include <algorithm>

#include "cli/options/config_options.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/open_task.h"
#include "reformer/base/errors.h"
#include "reformer/io/huggingface.h"
#include "reformer/model/prediction.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/repeats.h"

namespace reformer::cli {
namespace {

// Shorter sequences for the same model: as many more of them in a batch.
Config task_config(const Config& trained, int64_t length) {
  Config config = trained;
  if (length == 0) return config;
  const int64_t most = longest_input(trained);
  require(most == 0 || length <= most, "--length: this model takes at most ",
          most, " positions, got ", length);
  config.train.length = length;
  config.train.batch =
      std::max<int64_t>(1, trained.train.batch * trained.train.length / length);
  check(config);
  return config;
}

// With 0 replaced by what it stands for, each once.
std::vector<int64_t> resolved(const std::vector<int64_t>& given, int64_t zero) {
  std::vector<int64_t> values;
  for (const int64_t value : given) {
    const int64_t meant = value > 0 ? value : zero;
    if (std::find(values.begin(), values.end(), meant) == values.end()) {
      values.push_back(meant);
    }
  }
  return values;
}

bool is_translation(const Config& config) {
  return config.task.name == TaskKind::kTranslation ||
         config.task.name == TaskKind::kTranslationToy;
}

// Before data is opened: which distances fit is known then.
void require_recallable(const Config& config,
                        const std::vector<int64_t>& distances,
                        const std::vector<int64_t>& lengths) {
  if (distances.empty()) return;
  require(config.task.name == TaskKind::kText,
          "--recall: a model of text is required, task.name is ",
          config.task.name);
  for (const int64_t length : lengths) {
    for (const int64_t distance : distances) {
      check_repeat_distance(length, distance);
    }
  }
}

std::vector<Sequences> sequences_of(const Checkpoint& checkpoint,
                                    const std::vector<int64_t>& lengths) {
  const Config& trained = checkpoint.config;
  const TaskConfig& task = trained.task;
  require(lengths.size() == 1 ||
              (task.data != "-" && task.validation != "-" && task.test != "-"),
          "--length: standard input can be read only once, got ",
          lengths.size(), " lengths; give a file");
  std::vector<Config> configs;  // all are checked before the first is opened
  for (const int64_t length : lengths) {
    configs.push_back(task_config(trained, length));
  }
  const auto tokenizer = run_tokenizer(trained, checkpoint.tokenizer);
  std::vector<Sequences> sequences;
  for (const auto& config : configs) {
    sequences.push_back(
        {config.train.length, open_task(config, &stop_requested(), tokenizer)});
  }
  return sequences;
}

Checkpoint loaded(const EvalOptions& options) {
  auto checkpoint = load_best_model(options.directory);
  auto& config = checkpoint.config;
  if (!options.data.empty()) config.task.data = options.data;
  set_values(config, options.assignments);
  if (options.our_attention) {
    config = with_our_attention(config);
    check(config);
  }
  require_recallable(config, options.recall,
                     resolved(options.lengths, config.train.length));
  require(!options.by_position || !is_translation(config),
          "--by-position: a model of one long sequence is required, task.name "
          "is ",
          config.task.name);
  return checkpoint;
}

}  // namespace

EvaluatedRun::EvaluatedRun(const EvalOptions& options)
    : checkpoint(loaded(options)),
      sequences(sequences_of(
          checkpoint,
          resolved(options.lengths, checkpoint.config.train.length))),
      rounds(resolved(options.rounds, checkpoint.config.lsh.rounds)) {}

}  // namespace reformer::cli
