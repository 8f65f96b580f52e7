// Requests for translations that share steps.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/serve/engine.h"

namespace reformer::cli {

// What waits while others are translated is translated together: a beam search
// takes many sentences at once. A sentence's output depends on its company by
// rounding alone.
class SharedTranslations {
 public:
  // Lines of several requests that are translated together, where one does not
  // have more by itself: nobody waits for more than these and those before.
  static constexpr std::size_t kMostLines = 64;

  struct Text {
    std::string text;
    int64_t tokens = 0;

    bool operator==(const Text&) const = default;
  };

  // A text for each line.
  using Translate =
      std::function<std::vector<Text>(const std::vector<std::string>& lines)>;

  // The engine must outlive it; `translate` is called on its thread.
  SharedTranslations(Translate translate, Engine& engine)
      : translate_(std::move(translate)), engine_(engine) {}

  // Waits for them. Throws what Engine::run throws, and what translating does.
  std::vector<Text> translate(const std::vector<std::string>& lines);

  // Requests that wait.
  std::size_t waiting();

 private:
  struct Asked {
    std::vector<std::string> lines;
    std::vector<Text> texts = {};
    std::exception_ptr fault = nullptr;
    bool done = false;  // of the engine's thread
  };
  using Together = std::vector<std::shared_ptr<Asked>>;

  Together next_together();
  void translate_next();

  Translate translate_;
  Engine& engine_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Asked>> waiting_;  // under the mutex
};

}  // namespace reformer::cli
