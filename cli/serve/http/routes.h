// Which path answers what.
#pragma once

#include <httplib.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "cli/serve/attention_view.h"
#include "cli/serve/engine.h"
#include "cli/serve/http/completions.h"
#include "cli/serve/http_server.h"
#include "cli/serve/served_model.h"

namespace reformer::cli {

// All must outlive it, and it the server that it is added to.
class Routes {
 public:
  Routes(const ServedModel& model, Engine& engine, const HttpOptions& options);

  void add_to(httplib::Server& server);

  // Answers that are being sent in pieces.
  int64_t answering() const { return completions_.answering(); }

 private:
  using Handler =
      std::function<void(const httplib::Request&, httplib::Response&)>;

  Handler guarded(bool token, const Handler& handler);
  void count(int status);
  void add_pages(httplib::Server& server);

  void models(httplib::Response& response) const;
  void metrics(httplib::Response& response);
  void attention(const httplib::Request& request, httplib::Response& response);

  const ServedModel& model_;
  Engine& engine_;
  HttpOptions options_;
  RequestLimits limits_;
  Completions completions_;
  std::unique_ptr<AttentionView> view_;  // of the model's thread
  std::mutex mutex_;
  std::map<int, int64_t> answered_;  // by status; under the mutex
};

}  // namespace reformer::cli
