// The model that `reformer serve` opens, and what it is called.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/generate/prompt.h"
#include "cli/translate/line_translator.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/model/language_model.h"

namespace reformer::cli {

// Of the two models one is there.
struct ServedModel {
  std::string name;     // of the run's folder
  int64_t created = 0;  // seconds since 1970
  Config config;        // with trailing windows, by which it generates
  std::unique_ptr<LanguageModel> language;
  std::unique_ptr<TokenWriting> writing;  // of the language model
  std::unique_ptr<EncoderDecoder> translation;
  std::unique_ptr<LineTranslator> translator;

  // "bytes", "pieces", "numbers", "image" or "translation".
  std::string kind() const;

  // What the page wants to know of it.
  nlohmann::ordered_json description() const;
};

// Throws Error where there is none.
ServedModel load_served_model(const std::string& directory, c10::Device device);

}  // namespace reformer::cli
