#include "reformer/tasks/task.h"

#include "reformer/base/errors.h"
#include "reformer/model/memory_limits.h"
#include "reformer/tasks/duplication.h"
#include "reformer/tasks/images.h"
#include "reformer/tasks/recall.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/tasks/text.h"
#include "reformer/tasks/translation.h"
#include "reformer/tasks/translation_toy.h"

namespace reformer {

std::unique_ptr<Task> make_task(const Config& config, DecodeObserver& observer,
                                std::shared_ptr<const Tokenizer> tokenizer) {
  check(config);
  require(config.task.name != TaskKind::kNone,
          "task.name: ", Choice<TaskKind>::all_names(),
          " are known; none has no data for batches");
  require_memory_for_batch(config.train);
  if (config.task.name == TaskKind::kDuplication) {
    return std::make_unique<DuplicationTask>(config);
  }
  if (config.task.name == TaskKind::kRecall) {
    return std::make_unique<RecallTask>(config);
  }
  if (config.task.name == TaskKind::kImages) {
    return std::make_unique<ImagesTask>(config, observer);
  }
  if (tokenizer == nullptr) {
    Config resolved = config;
    tokenizer = task_tokenizer(resolved, observer);
  }
  if (tokenizer != nullptr) require_vocabulary(config, *tokenizer);
  if (config.task.name == TaskKind::kTranslationToy) {
    return std::make_unique<TranslationToyTask>(config, std::move(tokenizer));
  }
  if (config.task.name == TaskKind::kTranslation) {
    return std::make_unique<TranslationTask>(config, std::move(tokenizer),
                                             observer);
  }
  return std::make_unique<TextTask>(config, observer, std::move(tokenizer));
}

std::unique_ptr<Task> make_task(const Config& config) {
  DecodeObserver nobody;
  return make_task(config, nobody);
}

}  // namespace reformer
