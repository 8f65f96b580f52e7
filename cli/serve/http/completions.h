// POST /v1/completions, and what the model makes of its prompts.
#pragma once

#include <httplib.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/serve/completion_request.h"
#include "cli/serve/engine.h"
#include "cli/serve/served_model.h"
#include "cli/serve/shared_translations.h"

namespace reformer::cli {

// All three must outlive it.
class Completions {
 public:
  Completions(const ServedModel& model, Engine& engine,
              const RequestLimits& limits);

  // Throw RequestError and what the engine throws.
  void complete(const httplib::Request& request, httplib::Response& response);
  void tokens(const httplib::Request& request,
              httplib::Response& response) const;

  // Answers that are being sent in pieces.
  int64_t answering() const { return *answering_; }

 private:
  void translate(const CompletionRequest& request, httplib::Response& response);
  GenerationRequest generation_of(CompletionRequest& request,
                                  int64_t& prompt_tokens) const;
  std::vector<int64_t> tokens_of(const RequestedPrompt& prompt) const;
  std::string next_id();

  const ServedModel& model_;
  Engine& engine_;
  const RequestLimits& limits_;
  std::unique_ptr<SharedTranslations> translations_;  // of such a model
  std::atomic<uint64_t> ids_ = 0;
  // Of answers too, which may end later than this.
  std::shared_ptr<std::atomic<int64_t>> answering_ =
      std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace reformer::cli
