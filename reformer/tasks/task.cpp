#include "reformer/tasks/task.h"

#include "reformer/base/errors.h"
#include "reformer/model/memory_limits.h"
#include "reformer/tasks/duplication.h"
#include "reformer/tasks/images.h"
#include "reformer/tasks/recall.h"
#include "reformer/tasks/text.h"

namespace reformer {

std::unique_ptr<Task> make_task(const Config& config,
                                DecodeObserver& observer) {
  check(config);
  require(config.task.name != TaskKind::kNone,
          "task.name: text, images, duplication or recall is required for "
          "batches, none has no data");
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
  return std::make_unique<TextTask>(config, observer);
}

std::unique_ptr<Task> make_task(const Config& config) {
  DecodeObserver nobody;
  return make_task(config, nobody);
}

}  // namespace reformer
