// What a model answers to a prompt, as it is made and as it is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/generate/prompt.h"
#include "cli/generate/text_stream.h"

namespace reformer::cli {

enum class Ended { kNot, kLength, kStop, kInterrupted };

// One text, token by token, until its length, a stop string or an interrupt
// ends it. What comes after that is not of it.
class Answer {
 public:
  // after: what it follows, whose end says whether it begins a line.
  Answer(const TokenWriting& writing, std::vector<std::string> stops,
         const std::string& after);

  // `seconds` since the first token was begun; length: with how many it ends.
  void add(int64_t token, int64_t length, double seconds);
  void interrupt(double seconds);

  const std::string& text() const { return text_; }  // what may be shown of it
  const std::string& stop() const { return *stream_.stopped_by(); }
  int64_t tokens() const { return tokens_; }
  double seconds() const { return seconds_; }
  Ended ended() const { return ended_; }

 private:
  void end(Ended why, double seconds);

  const TokenWriting* writing_;
  std::optional<TokenWriter> pieces_;
  TextStream stream_;
  std::string text_;
  int64_t tokens_ = 0;
  double seconds_ = 0;
  Ended ended_ = Ended::kNot;
};

struct AnswerStyle {
  bool json = false;         // one object a line, when an answer has ended
  bool show_prompt = false;  // before its answer
  uint64_t seed = 0;         // for the JSON
};

// Prints answers in order, the first that has not ended as it is made: what is
// known of the next ones follows when those before them have ended. Each ends
// with the end of a line.
class AnswerPrinter {
 public:
  // Both must outlive it and not move.
  AnswerPrinter(const std::vector<std::string>& prompts,
                const std::vector<Answer>& answers, const AnswerStyle& style)
      : prompts_(prompts), answers_(answers), style_(style) {}

  // What is new since the last time.
  void update();

 private:
  void begin();
  void print_new(const Answer& answer);
  std::string json_line() const;

  const std::vector<std::string>& prompts_;
  const std::vector<Answer>& answers_;
  AnswerStyle style_;
  size_t current_ = 0;
  bool begun_ = false;
  size_t printed_ = 0;     // bytes of the current answer
  char last_byte_ = '\n';  // that was printed
};

}  // namespace reformer::cli
