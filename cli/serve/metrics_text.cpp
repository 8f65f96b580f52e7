#include "cli/serve/metrics_text.h"

#include <cstdio>

namespace reformer::cli {

std::string metrics_text(const EngineCounts& counts, int64_t predicted,
                         const std::map<int, int64_t>& answered) {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help,
                       double value) {
    char line[320];
    std::snprintf(line, sizeof(line),
                  "# HELP reformer_%s %s\n# TYPE reformer_%s %s\n"
                  "reformer_%s %.17g\n",
                  name, help, name, type, name, value);
    text += line;
  };
  add("texts_running", "gauge", "Texts that go on now", double(counts.running));
  add("texts_waiting", "gauge", "Texts in the queue", double(counts.waiting));
  add("texts_total", "counter", "Texts that came to their end",
      double(counts.texts));
  add("texts_cancelled_total", "counter", "Texts whose client went away",
      double(counts.cancelled));
  add("prompt_tokens_total", "counter", "Tokens of prompts that were read",
      double(counts.prompt_tokens));
  add("tokens_total", "counter", "Tokens drawn", double(counts.tokens));
  add("steps_total", "counter", "Steps, each of all texts that run",
      double(counts.steps));
  add("turns_total", "counter", "Steps that were made while a prompt was read",
      double(counts.turns));
  add("reading_seconds_total", "counter", "Time of reading prompts",
      counts.reading_seconds);
  add("step_seconds_total", "counter", "Time of steps", counts.step_seconds);
  add("cache_bytes_limit", "gauge",
      "What caches of running texts may come to, predicted", double(predicted));
  text +=
      "# HELP reformer_responses_total Answers by HTTP status\n"
      "# TYPE reformer_responses_total counter\n";
  for (const auto& [status, number] : answered) {
    text += "reformer_responses_total{status=\"" + std::to_string(status) +
            "\"} " + std::to_string(number) + "\n";
  }
  return text;
}

}  // namespace reformer::cli
