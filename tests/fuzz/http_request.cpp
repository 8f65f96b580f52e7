// cli/serve/http: what strangers send to the port of `reformer serve`, bytes as
// they come, to a server of a small model.
#include <httplib.h>

#include <charconv>
#include <set>

#include "cli/serve/http/limits.h"
#include "cli/serve/http/routes.h"
#include "reformer/base/errors.h"
#include "tests/fuzz/target.h"
#include "tests/support/duplication_config.h"

namespace reformer::fuzz {
namespace {

constexpr int64_t kBody = 2000;
constexpr const char* kToken = "sixteen-letters-and-more";

// A connection whose other side has sent all that it will.
class Connection : public httplib::Stream {
 public:
  explicit Connection(const std::string& sent) : sent_(sent) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t n = sent_.copy(to, size, at_);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    answered_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 1;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  socket_t socket() const override { return -1; }

  bool at_end() const { return at_ == sent_.size(); }
  const std::string& answered() const { return answered_; }

 private:
  const std::string& sent_;
  size_t at_ = 0;
  std::string answered_;
};

cli::ServedModel small_model() {
  cli::ServedModel model;
  model.name = "small";
  model.config = duplication_config(256, 16, 16, 64);
  model.config.model.layers = 1;
  model.config.model.attention = std::string("lsh");
  model.config.lsh.chunk_length = 8;
  model.config.lsh.n_buckets = 4;
  model.config.lsh.window = Window::kTrailing;
  model.language = std::make_unique<LanguageModel>(model.config);
  model.writing = std::make_unique<cli::TokenWriting>(model.config, nullptr);
  return model;
}

cli::HttpOptions options_of(const std::string& token) {
  cli::HttpOptions options;
  options.token = token;
  options.context = 40;
  options.most_rounds = 2;
  options.body = kBody;
  return options;
}

class Served : public httplib::Server {
 public:
  Served(const cli::ServedModel& model, cli::Engine& engine,
         const std::string& token)
      : options_(options_of(token)), routes_(model, engine, options_) {
    cli::set_limits(*this, engine, options_);
    routes_.add_to(*this);
    svr_sock_ = 0;  // as while it listens
  }

  // All that is answered to what was sent.
  std::string answers(const std::string& sent) {
    constexpr int kMostRequests = 20;
    Connection connection(sent);
    bool goes_on = true;
    bool closed = false;
    for (int i = 0; i < kMostRequests && goes_on && !closed; ++i) {
      if (connection.at_end()) break;
      goes_on = process_request(connection, /*close_connection=*/false, closed,
                                /*setup_request=*/nullptr);
    }
    return connection.answered();
  }

 private:
  cli::HttpOptions options_;
  cli::Routes routes_;
};

// One for all inputs: what they leave behind is that they were counted.
struct Server {
  cli::ServedModel model = small_model();
  cli::Engine engine{model.language.get(), model.writing.get(), {2, 4, 4096}};
  Served open{model, engine, ""};
  Served closed{model, engine, kToken};
};

Server& server() {
  static Server all;
  return all;
}

// What is left of an answer, or several, as a client reads it.
class Answers {
 public:
  explicit Answers(const std::string& text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }

  // The status of the next one, whose form is what HTTP asks for.
  int next() {
    const auto first = line();
    law(first.starts_with("HTTP/1.1 ") && first.size() > 13 && first[12] == ' ',
        "an answer begins with HTTP's version, a status and its name");
    const int status = number(first.substr(9, 3), 10);
    if (status == 100) {
      law(line().empty(), "100 has no headers");
      return status;
    }
    long size = -1;
    bool chunked = false;
    bool framed = false;
    for (auto header = line(); !header.empty(); header = line()) {
      const size_t colon = header.find(": ");
      law(colon != std::string_view::npos && colon > 0, "headers have names");
      const auto value = header.substr(colon + 2);
      const auto name = header.substr(0, colon);
      if (name == "Content-Length") size = number(value, 10);
      if (name == "Transfer-Encoding") chunked = value == "chunked";
      if (name == "X-Frame-Options") framed = true;
    }
    law(framed, "every answer forbids frames");
    law(chunked != (size >= 0), "a body has one length");
    head_ = rest_;
    chunked ? skip_chunks() : skip(size);
    return status;
  }

  // The body of a HEAD's answer is not sent.
  void without_body() { rest_ = head_; }

 private:
  std::string_view line() {
    const size_t end = rest_.find("\r\n");
    law(end != std::string_view::npos, "a line ends");
    const auto found = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return found;
  }
  static int number(std::string_view text, int base) {
    int value = -1;
    const auto end =
        std::from_chars(text.data(), text.data() + text.size(), value, base);
    law(end.ec == std::errc() && end.ptr == text.data() + text.size() &&
            value >= 0,
        "a number");
    return value;
  }
  void skip(long size) {
    law(static_cast<size_t>(size) <= rest_.size(), "a body is all there");
    rest_.remove_prefix(static_cast<size_t>(size));
  }
  void skip_chunks() {
    for (int size = -1; size != 0;) {
      size = number(line(), 16);
      skip(size);
      law(line().empty(), "a chunk ends");
    }
  }

  std::string_view rest_;
  std::string_view head_;
};

void check_answers(const std::string& text, bool heads) {
  // As docs/guides/serve.md has them.
  static const std::set<int> known = {100, 200, 400, 401, 403, 404,
                                      411, 413, 414, 415, 416, 429};
  if (heads) return;  // where a body follows only the client knows
  for (Answers answers(text); !answers.at_end();) {
    const int status = answers.next();
    law(known.count(status) == 1,
        "the guide has no status " + std::to_string(status));
  }
}

void execute(const std::string& input) {
  const bool heads = input.find("HEAD") != std::string::npos;
  try {
    check_answers(server().open.answers(input), heads);
    check_answers(server().closed.answers(input), heads);
  } catch (const Error& error) {  // no answer, for whoever sent this
    law(false, std::string("every fault is answered: ") + error.what());
  }
}

std::string post(const std::string& path, const std::string& body,
                 const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost:8080\r\n" + headers +
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost:8080\r\n" + headers +
         "\r\n";
}

std::vector<std::string> seeds() {
  const std::string token = std::string("Authorization: Bearer ") + kToken;
  const std::string chunked =
      "POST /v1/tokens HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  return {
      get("/") + get("/page.js"),
      get("/v1/models", token + "\r\n"),
      get("/metrics", "Range: bytes=0-3,5-\r\nConnection: close\r\n"),
      get("/health?a=b%20c", "Origin: http://other.example\r\n"),
      "HEAD /page.css HTTP/1.1\r\n\r\n",
      "OPTIONS * HTTP/1.0\r\nAccept-Encoding: gzip, br\r\n\r\n",
      post("/v1/completions", R"({"prompt": "ab", "max_tokens": 3})"),
      post("/v1/completions",
           R"({"prompt": "ab", "max_tokens": 3, "stream": true, "seed": 1})",
           token + "\r\nExpect: 100-continue\r\n"),
      post("/v1/completions", R"({"prompt": [1, 2], "n": 2, "logprobs": 2})"),
      post("/v1/attention", R"({"tokens": [1, 2, 3], "position": 1})"),
      post("/v1/tokens", R"({"prompt": "a"})") + get("/"),
      post("/v1/chat/completions", R"({"messages": []})"),
      post("/v1/completions", "{", "Content-Encoding: gzip\r\n"),
      post("/v1/completions", std::string(kBody + 1, ' ')),
      chunked + "2\r\n{}\r\n0\r\n\r\n",
      "PUT /v1/models HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
  };
}

const Registered registered({"http_request", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
