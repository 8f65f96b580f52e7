#include "cli/serve/generation.h"

#include <utility>

#include "reformer/base/errors.h"

namespace reformer::cli {

Generation::Generation(GenerationRequest request, const TokenWriting& writing)
    : request_(std::move(request)),
      writing_(writing),
      running_(std::ssize(request_.prompts)) {
  for (const auto& before : request_.before) {
    Text text{std::nullopt, TextStream(request_.stops)};
    if (writing.pieces() != nullptr) {
      text.pieces.emplace(*writing.pieces(),
                          before.empty() || before.ends_with('\n'));
    }
    texts_.push_back(std::move(text));
  }
}

bool Generation::add(int64_t choice, int64_t token, double probability,
                     std::vector<Candidate> alternatives) {
  auto& text = texts_.at(static_cast<std::size_t>(choice));
  GeneratedToken made;
  made.choice = choice;
  made.token = token;
  made.probability = probability;
  made.alternatives = std::move(alternatives);
  made.bytes = text.pieces ? text.pieces->add(token) : writing_.written(token);
  made.text = text.stream.add(made.bytes);
  if (text.stream.stopped_by()) {
    made.finish = Finish::kStop;
  } else if (++text.tokens == request_.max_tokens) {
    made.finish = Finish::kLength;
    made.text += text.stream.finish();
  }
  text.ended = made.finish != Finish::kNot;
  {
    const std::lock_guard lock(mutex_);
    if (text.ended) --running_;
    made_.push_back(std::move(made));
    if (running_ == 0) ended_.notify_one();
  }
  changed_.notify_one();
  return text.ended;
}

void Generation::fail(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    fault_ = sentence;
  }
  ended_.notify_one();
  changed_.notify_one();
}

std::vector<GeneratedToken> Generation::take(std::chrono::milliseconds at_most,
                                             std::chrono::milliseconds apart) {
  std::unique_lock lock(mutex_);
  if (taken_) {
    ended_.wait_until(lock, *taken_ + apart,
                      [this] { return running_ == 0 || fault_; });
  }
  changed_.wait_for(lock, at_most, [this] { return !made_.empty() || fault_; });
  if (made_.empty() && fault_) throw Error(*fault_);
  taken_ = std::chrono::steady_clock::now();
  return std::exchange(made_, {});
}

bool Generation::done() const {
  const std::lock_guard lock(mutex_);
  return running_ == 0 && made_.empty();
}

}  // namespace reformer::cli
