#include "cli/generate/answer.h"

#include <nlohmann/json.hpp>

#include "cli/screen/output.h"

namespace reformer::cli {
namespace {

const char* name_of(Ended ended) {
  switch (ended) {
    case Ended::kLength:
      return "length";
    case Ended::kStop:
      return "stop";
    default:
      return "interrupted";
  }
}

}  // namespace

Answer::Answer(const TokenWriting& writing, std::vector<std::string> stops,
               const std::string& after)
    : writing_(&writing), stream_(std::move(stops)) {
  if (writing.pieces() == nullptr) return;
  pieces_.emplace(*writing.pieces(), after.empty() || after.ends_with('\n'));
}

void Answer::end(Ended why, double seconds) {
  ended_ = why;
  seconds_ = seconds;
  text_ += stream_.finish();
}

void Answer::add(int64_t token, int64_t length, double seconds) {
  if (ended_ != Ended::kNot) return;
  ++tokens_;
  text_ +=
      stream_.add(pieces_ ? pieces_->add(token) : writing_->written(token));
  if (stream_.stopped_by()) {
    end(Ended::kStop, seconds);
  } else if (tokens_ == length) {
    end(Ended::kLength, seconds);
  }
}

void Answer::interrupt(double seconds) {
  if (ended_ == Ended::kNot) end(Ended::kInterrupted, seconds);
}

// U+FFFD stands for bytes that are no UTF-8.
std::string AnswerPrinter::json_line() const {
  const auto& answer = answers_[current_];
  const double seconds = answer.seconds();
  nlohmann::ordered_json json;
  json["prompt"] = prompts_[current_];
  json["text"] = answer.text();
  json["tokens"] = answer.tokens();
  json["ended"] = name_of(answer.ended());
  if (answer.ended() == Ended::kStop) json["stop"] = answer.stop();
  json["seconds"] = seconds;
  json["tokens_per_s"] = seconds > 0 ? double(answer.tokens()) / seconds : 0;
  json["seed"] = style_.seed;
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

void AnswerPrinter::begin() {
  begun_ = true;
  printed_ = 0;
  std::string head;
  if (prompts_.size() > 1) {
    head = "--- " + std::to_string(current_ + 1) + " of " +
           std::to_string(prompts_.size()) + "\n";
  }
  if (style_.show_prompt) head += prompts_[current_];
  last_byte_ = head.empty() ? '\0' : head.back();
  if (!head.empty()) print(head);
}

void AnswerPrinter::print_new(const Answer& answer) {
  if (!begun_) begin();
  const auto fresh = answer.text().substr(printed_);
  printed_ = answer.text().size();
  if (!fresh.empty()) {
    last_byte_ = fresh.back();
    print(fresh);
  }
  if (answer.ended() != Ended::kNot && last_byte_ != '\n') print("\n");
}

void AnswerPrinter::update() {
  for (; current_ < answers_.size(); ++current_, begun_ = false) {
    const auto& answer = answers_[current_];
    const bool ended = answer.ended() != Ended::kNot;
    if (!style_.json) {
      print_new(answer);
    } else if (ended) {
      print(json_line());
    }
    if (!ended) return;
  }
}

}  // namespace reformer::cli
