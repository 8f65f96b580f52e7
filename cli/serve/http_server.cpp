#include "cli/serve/http_server.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/serve/http/limits.h"
#include "cli/serve/http/routes.h"
#include "cli/serve/http/server.h"
#include "reformer/base/errors.h"

namespace reformer::cli {

using std::chrono::milliseconds;

void require_http() {}

void serve_http(const ServedModel& model, Engine& engine,
                const HttpOptions& options) {
  Server server;
  set_limits(server, engine, options);
  Routes routes(model, engine, options);
  routes.add_to(server);
  int port = static_cast<int>(options.port);
  if (port == 0) {
    port = server.bind_to_any_port(options.host);
  } else if (!server.bind_to_port(options.host, port)) {
    port = -1;
  }
  require(port > 0, "cannot listen at ", options.host, ", port ", options.port,
          ": it is taken, or not this machine's; another one: --port N");
  server.let_many_wait();
  const bool six = options.host.find(':') != std::string::npos;
  print("serving " + model.name + " at http://" + (six ? "[" : "") +
        options.host + (six ? "]" : "") + ":" + std::to_string(port) + "/\n");
  std::atomic<bool> ended = false;
  std::thread watch([&] {
    while (!stop_requested() && !ended) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    engine.stop();  // answers that are being made end, with a sentence
    for (int i = 0; i < 40 && routes.answering() > 0; ++i) {
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
