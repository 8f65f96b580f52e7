#include "cli/serve/http/limits.h"

#include "cli/serve/completion_json.h"
#include "cli/serve/http/answers.h"
#include "cli/serve/http/connection_threads.h"

namespace reformer::cli {
namespace {

constexpr time_t kIdleSeconds = 15;      // of a connection between requests
constexpr size_t kMostRequests = 10000;  // of one connection
constexpr int64_t kOtherConnections = 32;

const char* sentence_on(int status) {
  switch (status) {
    case 404:
      return "there is nothing here by this method and path; see / and "
             "/v1/models";
    case 413:
      return "the body is larger than this server takes (--body)";
    case 414:
      return "the address is too long";
    case 416:
      return "this is no range, and parts of an answer are not offered";
    default:
      return "this is no HTTP request that can be answered, or one whose head "
             "is too large or came too slowly";
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

// Of a page the library would send as many parts, and as large ones, as are
// asked for: 700 times all of it for a header of 8 KiB. Whoever answers may
// take no notice of `Range` (RFC 9110, 14.2); this is the only way to here.
void forget_ranges(const httplib::Request& request) {
  const_cast<httplib::Request&>(request).ranges.clear();  // NOLINT
}

// What was not read of a refused body must not be taken for the next request.
// The library closes a connection when whoever provides an answer fails, not
// for a `Connection: close` of ours; so this one fails at its end.
void put_last_error(httplib::Response& response, int status,
                    const char* sentence) {
  response.status = status;
  response.set_header("Connection", "close");
  const std::string text = error_text(status, sentence, "");
  response.set_content_provider(
      text.size(), kJson, [text](size_t at, size_t n, httplib::DataSink& sink) {
        sink.write(text.data() + at, n);
        return false;
      });
}

// Of a method without a body, one that is there is not read.
bool has_surplus_body(const httplib::Request& request, bool sends) {
  const auto count = request.get_header_value_count("Content-Length");
  if (sends || count == 0) return count > 1;
  return count > 1 || request.get_header_value("Content-Length") != "0";
}

// Bodies whose size nobody has said, or that are larger than their size: the
// library would take them whatever its limit is.
bool refuse_body(const httplib::Request& request, httplib::Response& response) {
  const auto refused = [&](int status, const char* sentence) {
    put_last_error(response, status, sentence);
    return true;
  };
  const bool sends = request.method == "POST" || request.method == "PUT" ||
                     request.method == "PATCH" || request.method == "DELETE";
  if (has_surplus_body(request, sends)) {
    return refused(400,
                   "one Content-Length, of a method with a body, is taken");
  }
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

}  // namespace

void set_limits(httplib::Server& server, const Engine& engine,
                const HttpOptions& options) {
  const int64_t connections =
      engine.limits().batch + engine.limits().queue + kOtherConnections;
  server.new_task_queue = [connections] {
    return new ConnectionThreads(static_cast<size_t>(connections));
  };
  server.set_read_timeout(static_cast<time_t>(options.timeout));
  server.set_write_timeout(static_cast<time_t>(options.timeout));
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
      [](const httplib::Request& request, httplib::Response& response) {
        forget_ranges(request);
        return refuse_body(request, response)
                   ? httplib::Server::HandlerResponse::Handled
                   : httplib::Server::HandlerResponse::Unhandled;
      });
  server.set_error_handler(
      [](const httplib::Request& request, httplib::Response& response) {
        forget_ranges(request);  // those before one that is none
        if (response.body.empty() && !response.content_provider_) {
          put_error(response, response.status, sentence_on(response.status));
        }
      });
}

}  // namespace reformer::cli
