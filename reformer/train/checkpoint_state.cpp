#include "reformer/train/checkpoint_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reformer/core/config_json.h"
#include "reformer/core/errors.h"
#include "reformer/core/json_text.h"
#include "reformer/core/xxhash64.h"

namespace reformer {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormat = 1;

// JSON's numbers are finite, and round trip exactly; others become text.
Json json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::to_string(number);
}

double number_of(const Json& json) {
  return json.is_string() ? std::stod(json.get<std::string>())
                          : json.get<double>();
}

// Of all that comes before it in the file.
std::string checksum_of(const std::string& text) {
  return xxhash64_hex(text.substr(0, text.rfind("\"checksum\"")));
}

void check(const Json& state, const std::string& text,
           const std::string& path) {
  const auto format = state.at("format").get<int64_t>();
  require(format <= kFormat, path, ": is of format ", format,
          ", which a newer program wrote; this one reads ", kFormat);
  require(state.at("checksum") == checksum_of(text), path,
          ": damaged: its checksum differs");
}

CheckpointState state_of(const Json& json, const std::string& path) {
  CheckpointState state;
  Checkpoint& to = state.checkpoint;
  to.step = json.at("step");
  to.data_position = json.at("data_position");
  to.best_loss = number_of(json.at("best_loss"));
  to.has_best = json.at("has_best");
  to.seconds = number_of(json.at("seconds"));
  to.threads = json.at("threads");
  to.instruction_set = json.at("instruction_set");
  state.checksums = json.at("files");
  to.config = config_from_json(json.at("config").dump(), path);
  return state;
}

}  // namespace

std::string render_state(const CheckpointState& state) {
  const Checkpoint& from = state.checkpoint;
  Json json;
  json["format"] = kFormat;
  json["step"] = from.step;
  json["data_position"] = from.data_position;
  json["best_loss"] = json_of(from.best_loss);
  json["has_best"] = from.has_best;
  json["seconds"] = json_of(from.seconds);
  json["threads"] = from.threads;
  json["instruction_set"] = from.instruction_set;
  json["files"] = state.checksums;
  json["config"] = Json::parse(config_to_json(from.config));
  json["checksum"] = "";
  json["checksum"] = checksum_of(json.dump(2));
  return json.dump(2) + "\n";
}

CheckpointState parse_state(const std::string& text, const std::string& path) {
  require(!text.empty(), path, ": is empty");
  try {
    const auto json = parse_json<Json>(text);
    check(json, text, path);
    return state_of(json, path);
  } catch (const JsonError& error) {
    throw Error(path + ": damaged: " + error.what());
  } catch (const Json::exception&) {
    throw Error(path + ": is no checkpoint's state");
  }
}

}  // namespace reformer
