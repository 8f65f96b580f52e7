#include "cli/serve/shared_translations.h"

#include <iterator>
#include <utility>

namespace reformer::cli {

// The first that wait, as many as may go together.
SharedTranslations::Together SharedTranslations::next_together() {
  Together together;
  std::size_t lines = 0;
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty()) {
    lines += waiting_.front()->lines.size();
    if (!together.empty() && lines > kMostLines) break;
    together.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return together;
}

void SharedTranslations::translate_next() {
  const auto together = next_together();
  std::exception_ptr fault;
  try {
    std::vector<std::string> lines;
    for (const auto& asked : together) {
      lines.insert(lines.end(), asked->lines.begin(), asked->lines.end());
    }
    auto made = translate_(lines);
    auto text = std::make_move_iterator(made.begin());
    for (const auto& asked : together) {
      const auto end = text + std::ssize(asked->lines);
      asked->texts.assign(text, end);
      text = end;
    }
  } catch (...) {
    fault = std::current_exception();
  }
  for (const auto& asked : together) {
    asked->fault = fault;
    asked->done = true;
  }
}

std::size_t SharedTranslations::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

std::vector<SharedTranslations::Text> SharedTranslations::translate(
    const std::vector<std::string>& lines) {
  const auto mine = std::make_shared<Asked>(Asked{lines});
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(mine);
  }
  try {
    engine_.run([&] {
      while (!mine->done) translate_next();
    });
  } catch (...) {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, mine);
    throw;
  }
  if (mine->fault) std::rethrow_exception(mine->fault);
  return std::move(mine->texts);
}

}  // namespace reformer::cli
