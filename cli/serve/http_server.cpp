#include "cli/serve/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/serve/attention_view.h"
#include "cli/serve/completion_json.h"
#include "cli/serve/completion_request.h"
#include "cli/serve/loopback.h"
#include "cli/serve/page.h"
#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"
#include "reformer/base/json_text.h"
#include "reformer/version.h"

namespace reformer::cli {
namespace {

using Json = nlohmann::ordered_json;
using httplib::Request;
using httplib::Response;
using std::chrono::milliseconds;

constexpr time_t kReadSeconds = 10;
constexpr time_t kWriteSeconds = 10;
constexpr time_t kIdleSeconds = 15;      // of a connection between requests
constexpr size_t kMostRequests = 10000;  // of one connection
constexpr int64_t kOtherConnections = 32;
constexpr milliseconds kPoll{200};
constexpr int kSilentPolls = 25;  // until a stream says that it is there

constexpr const char* kJson = "application/json";
constexpr const char* kEvents = "text/event-stream";

// A thread for each connection, as many as there may be; more connections wait.
class ConnectionThreads : public httplib::TaskQueue {
  // void or bool, by the library's version.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(
      std::function<void()>()));

 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  Enqueued enqueue(std::function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(work));
      if (waiting_.size() > idle_ && threads_.size() < most_) {
        threads_.emplace_back([this] { loop(); });
      }
    }
    wake_.notify_one();
    return static_cast<Enqueued>(true);
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
      --idle_;
      if (waiting_.empty()) return;
      const auto work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ended_ = false;
};

// Takes as long for a wrong token as for the right one.
bool same(const std::string& a, const std::string& b) {
  size_t differs = a.size() ^ b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<size_t>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  }
  return differs == 0;
}

// The host without its port: "[::1]" of "[::1]:8080".
std::string name_in(const std::string& host) {
  const size_t bracket = host.find(']');
  const size_t colon =
      host.find(':', bracket == std::string::npos ? 0 : bracket);
  return host.substr(0, colon);
}

uint64_t any_seed() {
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  const std::lock_guard lock(mutex);
  return random() >> 11;  // JavaScript's numbers hold it
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void put_error(Response& response, int status, const std::string& sentence,
               const std::string& key = "") {
  response.status = status;
  if (status == 429) response.set_header("Retry-After", "1");
  response.set_content(error_text(status, sentence, key), kJson);
}

class Service {
 public:
  Service(const ServedModel& model, Engine& engine, const HttpOptions& options)
      : model_(model), engine_(engine), options_(options) {
    if (model.language)
      view_ = std::make_unique<AttentionView>(*model.language);
    limits_.context = options.context;
    limits_.rounds = options.most_rounds;
    limits_.texts = engine.limits().batch + engine.limits().queue;
  }

  void add_to(httplib::Server& server);

  // Answers that are being sent in pieces.
  int64_t answering() const { return *answering_; }

 private:
  using Handler = std::function<void(const Request&, Response&)>;

  void check_origin(const Request& request) const;
  void check_token(const Request& request) const;
  Handler guarded(bool token, const Handler& handler);
  void count(int status);

  void models(Response& response) const;
  void metrics(Response& response);
  void complete(const Request& request, Response& response);
  void attention(const Request& request, Response& response);
  void tokens(const Request& request, Response& response) const;
  void translate(const CompletionRequest& request, Response& response);
  GenerationRequest generation_of(CompletionRequest& request,
                                  int64_t& prompt_tokens) const;
  std::vector<int64_t> tokens_of(const RequestedPrompt& prompt) const;
  std::string next_id();

  const ServedModel& model_;
  Engine& engine_;
  HttpOptions options_;
  RequestLimits limits_;
  std::unique_ptr<AttentionView> view_;  // of the model's thread
  std::atomic<uint64_t> ids_ = 0;
  std::shared_ptr<std::atomic<int64_t>> answering_ =
      std::make_shared<std::atomic<int64_t>>(0);
  std::mutex mutex_;
  std::map<int, int64_t> answered_;  // by status; under the mutex
};

// A page of somebody else, open in the same browser, must not reach this one:
// neither by its own address, nor by a name of its own for this machine.
void Service::check_origin(const Request& request) const {
  const std::string host = request.get_header_value("Host");
  const std::string name = name_in(host);
  const bool known = host.empty() || !is_loopback(options_.host) ||
                     is_loopback(name) || name == options_.host;
  if (!known) {
    throw RequestError(
        403, "",
        "this server is for this machine alone, not for " + shortened(host));
  }
  const std::string origin = request.get_header_value("Origin");
  const bool own = origin.empty() || origin == "http://" + host ||
                   origin == "https://" + host;
  if (!own || request.get_header_value("Sec-Fetch-Site") == "cross-site") {
    throw RequestError(403, "",
                       "requests of other pages are refused" +
                           (origin.empty() ? "" : ": " + shortened(origin)));
  }
}

void Service::check_token(const Request& request) const {
  if (options_.token.empty()) return;
  const std::string given = request.get_header_value("Authorization");
  if (same(given, "Bearer " + options_.token)) return;
  throw RequestError(401, "",
                     given.empty()
                         ? "a token is required: Authorization: Bearer TOKEN"
                         : "the token is another one");
}

Service::Handler Service::guarded(bool token, const Handler& handler) {
  return [this, token, handler](const Request& request, Response& response) {
    try {
      check_origin(request);
      if (token) check_token(request);
      handler(request, response);
    } catch (const RequestError& error) {
      put_error(response, error.status(), error.what(), error.key());
    } catch (const QueueFull& error) {
      put_error(response, engine_.stopping() ? 503 : 429, error.what());
    } catch (const Interrupted&) {
      put_error(response, 503, "the server is being stopped");
    } catch (const std::exception& error) {
      const std::string sentence = error.what();  // LibTorch's has many lines
      put_error(response, 500, sentence.substr(0, sentence.find('\n')));
    }
  };
}

void Service::count(int status) {
  const std::lock_guard lock(mutex_);
  ++answered_[status];
}

std::string Service::next_id() {
  char id[48];
  std::snprintf(id, sizeof(id), "cmpl-%016" PRIx64, ++ids_);
  return id;
}

void Service::models(Response& response) const {
  auto about = model_.description();
  about["context"] = options_.context;
  about["most_rounds"] = options_.most_rounds;
  about["version"] = version();
  Json json;
  json["object"] = "list";
  json["data"] = {{{"id", model_.name},
                   {"object", "model"},
                   {"created", model_.created},
                   {"owned_by", "reformer"},
                   {"reformer", about}}};
  response.set_content(json_text(json), kJson);
}

void Service::metrics(Response& response) {
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
  const auto& counts = engine_.counts();
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
  add("reading_seconds_total", "counter", "Time of reading prompts",
      counts.reading_seconds);
  add("step_seconds_total", "counter", "Time of steps", counts.step_seconds);
  add("cache_bytes_limit", "gauge",
      "What caches of running texts may come to, predicted",
      double(options_.predicted));
  text +=
      "# HELP reformer_responses_total Answers by HTTP status\n"
      "# TYPE reformer_responses_total counter\n";
  const std::lock_guard lock(mutex_);
  for (const auto& [status, number] : answered_) {
    text += "reformer_responses_total{status=\"" + std::to_string(status) +
            "\"} " + std::to_string(number) + "\n";
  }
  response.set_content(text, "text/plain; version=0.0.4; charset=utf-8");
}

std::vector<int64_t> Service::tokens_of(const RequestedPrompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    try {
      return model_.writing->tokens_of(*text);
    } catch (const Error& error) {
      throw RequestError(400, "prompt", error.what());
    }
  }
  const auto& tokens = std::get<std::vector<int64_t>>(prompt);
  const int64_t vocabulary = model_.config.model.vocabulary;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= vocabulary) {
      throw RequestError(400, "prompt",
                         "prompt: " + std::to_string(token) +
                             " is no token of this model, which has 0 to " +
                             std::to_string(vocabulary - 1));
    }
  }
  return tokens;
}

GenerationRequest Service::generation_of(CompletionRequest& request,
                                         int64_t& prompt_tokens) const {
  if (!request.seeded) request.sampler.seed = any_seed();
  GenerationRequest generation;
  generation.sampler = request.sampler;
  generation.max_tokens = request.max_tokens;
  generation.alternatives = request.logprobs.value_or(-1);
  generation.rounds = request.rounds;
  generation.stops = request.stops;
  prompt_tokens = 0;
  for (const auto& prompt : request.prompts) {
    const auto tokens = tokens_of(prompt);
    if (std::ssize(tokens) + request.max_tokens > options_.context) {
      throw RequestError(
          400, "max_tokens",
          "a text may have " + std::to_string(options_.context) +
              " tokens here: the prompt has " + std::to_string(tokens.size()) +
              " and max_tokens is " + std::to_string(request.max_tokens));
    }
    prompt_tokens += std::ssize(tokens);
    const auto* text = std::get_if<std::string>(&prompt);
    for (int64_t row = 0; row < request.n; ++row) {
      generation.prompts.push_back(tokens);
      generation.rows.push_back(row);
      generation.before.push_back(text == nullptr ? "" : *text);
    }
  }
  return generation;
}

// What a connection's thread needs while its answer is made.
struct Answering {
  std::shared_ptr<Generation> generation;
  CompletionAnswer answer;
  int64_t prompt_tokens;
  bool usage;
  std::shared_ptr<std::atomic<int64_t>> answering;
  std::vector<GeneratedToken> first = {};  // taken before the answer began
  int silent = 0;

  std::vector<GeneratedToken> take() {
    return first.empty() ? generation->take(kPoll) : std::exchange(first, {});
  }
};

std::string event(const Json& json) {
  return "data: " + json_text(json) + "\n\n";
}

// A piece of a stream; returns whether it goes on.
bool send_events(Answering& state, httplib::DataSink& sink) {
  std::string text;
  try {
    for (const auto& token : state.take()) {
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
  for (const auto& token : state.take()) state.answer.add(token);
  if (!state.generation->done()) return sink.is_writable();
  const std::string text = json_text(state.answer.whole(state.prompt_tokens));
  if (!sink.write(text.data(), text.size())) return false;
  sink.done();
  return true;
}

// A client that goes away ends the request: `release` is called then too.
template <class Send>
void answer_in_pieces(Response& response, const char* type,
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

void Service::complete(const Request& request, Response& response) {
  auto asked = completion_request_of(request.body, limits_);
  if (!asked.model.empty() && asked.model != model_.name) {
    throw RequestError(404, "model",
                       "there is no model " + shortened(asked.model) +
                           " here, only " + model_.name);
  }
  if (model_.translation) return translate(asked, response);
  int64_t prompt_tokens = 0;
  auto wanted = generation_of(asked, prompt_tokens);
  CompletionAnswer answer(next_id(), model_.name, now(), model_.writing.get(),
                          asked.logprobs.has_value(), asked.sampler.seed);
  auto state = std::make_shared<Answering>(
      Answering{engine_.submit(std::move(wanted)), std::move(answer),
                prompt_tokens, asked.stream_usage, answering_});
  response.set_header("Cache-Control", "no-store");
  if (asked.stream) {
    return answer_in_pieces(response, kEvents, state, send_events);
  }
  // Faults of the model show here, while there is still a status to say so.
  while (state->first.empty()) state->first = state->generation->take(kPoll);
  answer_in_pieces(response, kJson, state, send_whole);
}

void Service::translate(const CompletionRequest& request, Response& response) {
  if (request.n != 1 || request.logprobs || !request.stops.empty()) {
    throw RequestError(400, "n",
                       "a model that translates gives one text for each "
                       "prompt: n, logprobs and stop are not for it");
  }
  std::vector<std::string> lines;
  for (const auto& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text == nullptr) {
      throw RequestError(400, "prompt",
                         "prompt: a text to translate is required, not tokens");
    }
    const int64_t cut = model_.translator->tokens_too_many(*text);
    if (cut > 0) {
      throw RequestError(400, "prompt",
                         "prompt: " + std::to_string(cut) +
                             " tokens too many for the model's positions");
    }
    lines.push_back(*text);
  }
  TranslatedLines made;
  engine_.run([&] {
    made = model_.translator->translate(lines, {}, &engine_.stopping());
  });
  CompletionAnswer answer(next_id(), model_.name, now(), nullptr, false, 0);
  std::string events;
  for (size_t i = 0; i < made.texts.size(); ++i) {
    GeneratedToken token;
    token.choice = static_cast<int64_t>(i);
    token.text = made.texts[i];
    token.finish = Finish::kStop;
    if (request.stream) events += event(answer.chunk(token));
    answer.add(token);
  }
  response.set_header("Cache-Control", "no-store");
  if (request.stream) {
    response.set_content(events + "data: [DONE]\n\n", kEvents);
  } else {
    response.set_content(json_text(answer.whole(0)), kJson);
  }
}

void Service::attention(const Request& request, Response& response) {
  if (!view_) {
    throw RequestError(400, "", "a model that translates is not looked into");
  }
  const auto asked = attention_request_of(request.body, limits_);
  if (std::ssize(asked.tokens) > options_.context) {
    throw RequestError(400, "tokens",
                       "a text may have " + std::to_string(options_.context) +
                           " tokens here, got " +
                           std::to_string(asked.tokens.size()));
  }
  Json json;
  engine_.run([&] { json = view_->answer(asked); });
  response.set_header("Cache-Control", "no-store");
  response.set_content(json_text(json), kJson);
}

// POST /v1/tokens, of our own: the tokens of a prompt, and what each is called.
void Service::tokens(const Request& request, Response& response) const {
  if (model_.translation) {
    throw RequestError(400, "", "a model that translates takes texts");
  }
  const auto asked = completion_request_of(request.body, limits_);
  const auto tokens = tokens_of(asked.prompts[0]);
  Json json = {{"object", "tokens"}, {"tokens", tokens}};
  json["names"] = Json::array();
  std::optional<TokenWriter> pieces;
  if (model_.writing->pieces() != nullptr) {
    pieces.emplace(*model_.writing->pieces());
  }
  for (const int64_t token : tokens) {
    json["names"].push_back(name_of_token(
        pieces ? pieces->add(token) : model_.writing->written(token)));
  }
  response.set_header("Cache-Control", "no-store");
  response.set_content(json_text(json), kJson);
}

const char* type_of(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

void Service::add_to(httplib::Server& server) {
  for (const auto& file : page_files()) {
    const auto send = guarded(
        /*token=*/false, [file](const Request&, Response& response) {
          response.set_header("Cache-Control", "no-cache");
          response.set_content(file.contents, type_of(file.name));
        });
    const bool main = file.name == "index.html";
    server.Get(
        main ? "/"
             : "/" + std::regex_replace(file.name, std::regex(R"(\.)"), "\\."),
        send);
  }
  server.Get("/health",
             guarded(/*token=*/false, [](const Request&, Response& response) {
               response.set_content(R"({"status":"ok"})", kJson);
             }));
  server.Get("/v1/models", guarded(/*token=*/true,
                                   [this](const Request&, Response& response) {
                                     models(response);
                                   }));
  server.Get("/metrics", guarded(/*token=*/true,
                                 [this](const Request&, Response& response) {
                                   metrics(response);
                                 }));
  server.Post("/v1/completions",
              guarded(/*token=*/true,
                      [this](const Request& request, Response& response) {
                        complete(request, response);
                      }));
  server.Post("/v1/attention",
              guarded(/*token=*/true,
                      [this](const Request& request, Response& response) {
                        attention(request, response);
                      }));
  server.Post("/v1/tokens",
              guarded(/*token=*/true,
                      [this](const Request& request, Response& response) {
                        tokens(request, response);
                      }));
  server.Post("/v1/chat/completions",
              guarded(/*token=*/true, [](const Request&, Response& response) {
                put_error(response, 404,
                          "this model continues texts, it does not chat: POST "
                          "/v1/completions");
              }));
  server.set_logger([this](const Request&, const Response& response) {
    count(response.status);
  });
}

const char* sentence_on(int status) {
  switch (status) {
    case 404:
      return "there is nothing here by this method and path; see / and "
             "/v1/models";
    case 413:
      return "the body is larger than this server takes (--body)";
    case 414:
      return "the address is too long";
    default:
      return "this is no HTTP request that can be answered";
  }
}

httplib::Headers security_headers() {
  return {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; "
       "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
  };
}

// Bodies whose size nobody has said, or that are larger than their size: the
// library would take them whatever its limit is.
bool refuse_body(const Request& request, Response& response) {
  const auto refused = [&](int status, const char* sentence) {
    put_error(response, status, sentence);
    response.set_header("Connection", "close");
    return true;
  };
  const bool sends = request.method != "GET" && request.method != "HEAD" &&
                     request.method != "OPTIONS";
  if (request.has_header("Transfer-Encoding") ||
      (sends && !request.has_header("Content-Length"))) {
    return refused(411, "the body's size is required: Content-Length");
  }
  const std::string type = request.get_header_value("Content-Type");
  if (request.has_header("Content-Encoding") ||
      type.find("multipart") != std::string::npos) {
    return refused(415, "a body of JSON is required, as it is");
  }
  return false;
}

void set_up(httplib::Server& server, const Engine& engine,
            const HttpOptions& options) {
  const int64_t connections =
      engine.limits().batch + engine.limits().queue + kOtherConnections;
  server.new_task_queue = [connections] {
    return new ConnectionThreads(static_cast<size_t>(connections));
  };
  server.set_read_timeout(kReadSeconds);
  server.set_write_timeout(kWriteSeconds);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_keep_alive_max_count(kMostRequests);
  server.set_payload_max_length(static_cast<size_t>(options.body));
  server.set_tcp_nodelay(true);
  // The library's own would let two servers share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_default_headers(security_headers());
  server.set_pre_routing_handler(
      [](const Request& request, Response& response) {
        return refuse_body(request, response)
                   ? httplib::Server::HandlerResponse::Handled
                   : httplib::Server::HandlerResponse::Unhandled;
      });
  server.set_error_handler([](const Request&, Response& response) {
    if (response.body.empty()) {
      put_error(response, response.status, sentence_on(response.status));
    }
  });
}

}  // namespace

void require_http() {}

void serve_http(const ServedModel& model, Engine& engine,
                const HttpOptions& options) {
  httplib::Server server;
  set_up(server, engine, options);
  Service service(model, engine, options);
  service.add_to(server);
  int port = static_cast<int>(options.port);
  if (port == 0) {
    port = server.bind_to_any_port(options.host);
  } else if (!server.bind_to_port(options.host, port)) {
    port = -1;
  }
  require(port > 0, "cannot listen at ", options.host, ", port ", options.port,
          ": it is taken, or not this machine's; another one: --port N");
  const bool six = options.host.find(':') != std::string::npos;
  print("serving " + model.name + " at http://" + (six ? "[" : "") +
        options.host + (six ? "]" : "") + ":" + std::to_string(port) + "/\n");
  std::atomic<bool> ended = false;
  std::thread watch([&] {
    while (!stop_requested() && !ended) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    engine.stop();  // answers that are being made end, with a sentence
    for (int i = 0; i < 40 && service.answering() > 0; ++i) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    // A stop before it listens is not heard: it is said when it does.
    while (!server.is_running() && !ended) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    server.stop();
  });
  server.listen_after_bind();
  ended = true;
  watch.join();
  require(stop_requested(), "the server can listen no longer");
}

}  // namespace reformer::cli
