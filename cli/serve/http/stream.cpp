#include "cli/serve/http/stream.h"

#include "cli/serve/http/answers.h"

namespace reformer::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kApart{20};  // pieces of a stream
constexpr int kSilentPolls = 25;    // until a stream says that it is there

// A piece of a stream; returns whether it goes on.
bool send_events(Answering& state, httplib::DataSink& sink) {
  std::string text;
  try {
    for (const auto& token : state.take(kApart)) {
      text += event(state.answer.chunk(token));
    }
  } catch (const std::exception& error) {
    text = "data: " + error_text(500, error.what()) + "\n\n";
    sink.write(text.data(), text.size());
    sink.done();
    return true;
  }
  const bool done = state.generation->done();
  if (done) {
    if (state.usage) {
      text += event(state.answer.usage_chunk(state.prompt_tokens));
    }
    text += "data: [DONE]\n\n";
  }
  // A comment, which clients skip: nobody takes silence for the end, and who
  // has gone away is noticed.
  if (text.empty() && ++state.silent % kSilentPolls == 0) text = ": \n\n";
  if (!text.empty() && !sink.write(text.data(), text.size())) return false;
  if (done) sink.done();
  return done || sink.is_writable();
}

// The answer in one piece, when all of it is there.
bool send_whole(Answering& state, httplib::DataSink& sink) {
  for (const auto& token : state.take(kPoll)) state.answer.add(token);
  if (!state.generation->done()) return sink.is_writable();
  const std::string text = json_text(state.answer.whole(state.prompt_tokens));
  if (!sink.write(text.data(), text.size())) return false;
  sink.done();
  return true;
}

// A client that goes away ends the request: `release` is called then too.
template <class Send>
void answer_in_pieces(httplib::Response& response, const char* type,
                      const std::shared_ptr<Answering>& state,
                      const Send& send) {
  ++*state->answering;
  response.set_chunked_content_provider(
      type,
      [state, send](size_t, httplib::DataSink& sink) {
        try {
          return send(*state, sink);
        } catch (const std::exception&) {
          return false;  // cuts it off: its status was sent long ago
        }
      },
      [state](bool) {
        state->generation->cancel();
        --*state->answering;
      });
}

}  // namespace

std::string event(const nlohmann::ordered_json& json) {
  return "data: " + json_text(json) + "\n\n";
}

void answer_in_events(httplib::Response& response,
                      const std::shared_ptr<Answering>& state) {
  answer_in_pieces(response, kEvents, state, send_events);
}

// Faults of the model show while there is still a status to say so.
void answer_whole(httplib::Response& response,
                  const std::shared_ptr<Answering>& state) {
  try {
    while (state->first.empty()) {
      state->first = state->generation->take(kPoll, /*apart=*/{});
    }
  } catch (...) {
    state->generation->cancel();  // its other texts are for nobody
    throw;
  }
  answer_in_pieces(response, kJson, state, send_whole);
}

}  // namespace reformer::cli
