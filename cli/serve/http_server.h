// `reformer serve`: the model over HTTP.
#pragma once

#include <cstdint>
#include <string>

#include "cli/serve/engine.h"
#include "cli/serve/served_model.h"

namespace reformer::cli {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8080;      // 0: any that is free
  std::string token;        // empty: none is asked for
  int64_t context = 1;      // tokens of a prompt with what follows it
  int64_t most_rounds = 1;  // of LSH attention that a request may ask for
  int64_t body = 1;         // bytes of a request
  int64_t timeout = 10;     // seconds of silence that end a connection
  int64_t predicted = 0;    // bytes of caches, for /metrics
};

// Answers until a stop is requested. Throws Error where the port is taken, and
// where this program was built without an HTTP library.
void serve_http(const ServedModel& model, Engine& engine,
                const HttpOptions& options);

// Throws Error where this program was built without an HTTP library: before
// anything is loaded.
void require_http();

}  // namespace reformer::cli
