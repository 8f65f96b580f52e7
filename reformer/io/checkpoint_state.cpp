#include "reformer/io/checkpoint_state.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/base/xxhash64.h"
#include "reformer/config/config_json.h"
#include "reformer/io/checkpoint_folder.h"

namespace reformer {

namespace {

using Json = nlohmann::ordered_json;

// The first programs know one file of optimizer state.
constexpr int64_t kFormat = 2;
int64_t format_of(const CheckpointState& state) {
  const auto is_part = [](const auto& file) {
    return is_optimizer_file(file.first) && file.first != kOptimizerFile;
  };
  return std::any_of(state.checksums.begin(), state.checksums.end(), is_part)
             ? 2
             : 1;
}

// JSON's numbers are finite, and round trip exactly; others become text.
Json json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::to_string(number);
}

double number_of(const Json& json, const char* key) {
  if (json.is_number()) return json.get<double>();
  for (const double other : {HUGE_VAL, -HUGE_VAL, double{NAN}, -double{NAN}}) {
    if (json == std::to_string(other)) return other;
  }
  throw Error(std::string(key) + ": a number is required, got " +
              excerpt(json));
}

int64_t count_of(const Json& json, const char* key) {
  require(json.is_number_integer() &&
              (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX),
          key, ": a whole number is required, got ", excerpt(json));
  return json.get<int64_t>();
}

// Reads the field `key` by `read`, and names it where it is missing or wrong.
template <class Read>
auto field(const Json& json, const char* key, const Read& read) {
  require(json.contains(key), key, " is missing");
  try {
    return read(json.at(key), key);
  } catch (const Json::exception&) {
    throw Error(std::string(key) +
                ": is not what it has to be: " + excerpt(json.at(key)));
  }
}

template <class T>
T as(const Json& json, const char*) {
  return json.get<T>();
}

// Of all that comes before it in the file.
std::string checksum_of(const std::string& text) {
  return xxhash64_hex(text.substr(0, text.rfind("\"checksum\"")));
}

void check(const Json& state, const std::string& text,
           const std::string& path) {
  const int64_t format = field(state, "format", count_of);
  if (format > kFormat) {
    throw Unreadable(path + ": is of format " + std::to_string(format) +
                     ", which a newer program wrote; this one reads " +
                     std::to_string(kFormat));
  }
  require(field(state, "checksum", as<std::string>) == checksum_of(text),
          "damaged: its checksum differs");
}

std::vector<DataIdentity> data_of(const Json& json) {
  std::vector<DataIdentity> data;
  if (!json.contains("data")) return data;  // an older program's
  for (const auto& source : json.at("data")) {
    data.push_back({field(source, "setting", as<std::string>),
                    field(source, "bytes", count_of),
                    field(source, "hash", as<std::string>)});
  }
  return data;
}

CheckpointState state_of(const Json& json) {
  CheckpointState state;
  Checkpoint& to = state.checkpoint;
  to.step = field(json, "step", count_of);
  to.data_position = field(json, "data_position", count_of);
  // Older programs saved when they had evaluated.
  to.evaluated_step = json.contains("evaluated_step")
                          ? field(json, "evaluated_step", count_of)
                          : to.step;
  to.best_loss = field(json, "best_loss", number_of);
  to.has_best = field(json, "has_best", as<bool>);
  to.seconds = field(json, "seconds", number_of);
  to.threads = static_cast<int>(field(json, "threads", count_of));
  to.instruction_set = field(json, "instruction_set", as<std::string>);
  to.data = data_of(json);
  state.checksums =
      field(json, "files", as<std::map<std::string, std::string>>);
  require(json.contains("config"), "config is missing");
  to.config = config_from_json(json.at("config").dump(), "config");
  require(to.step >= 0 && to.data_position >= 0,
          "step and data_position cannot be negative, got ", to.step, " and ",
          to.data_position);
  return state;
}

}  // namespace

std::string render_state(const CheckpointState& state) {
  const Checkpoint& from = state.checkpoint;
  Json json;
  json["format"] = format_of(state);
  json["step"] = from.step;
  json["data_position"] = from.data_position;
  json["evaluated_step"] = from.evaluated_step;
  json["best_loss"] = json_of(from.best_loss);
  json["has_best"] = from.has_best;
  json["seconds"] = json_of(from.seconds);
  json["threads"] = from.threads;
  json["instruction_set"] = from.instruction_set;
  json["data"] = Json::array();
  for (const auto& [setting, bytes, hash] : from.data) {
    json["data"].push_back(
        {{"setting", setting}, {"bytes", bytes}, {"hash", hash}});
  }
  json["files"] = state.checksums;
  json["config"] = Json::parse(config_to_json(from.config));
  json["checksum"] = "";
  json["checksum"] = checksum_of(json.dump(2));
  return json.dump(2) + "\n";
}

CheckpointState parse_state(const std::string& text, const std::string& path) {
  require(!text.empty(), path, ": is empty");
  Json json;
  try {
    json = parse_json<Json>(text);
    check(json, text, path);
  } catch (const Unreadable&) {
    throw;
  } catch (const JsonError& error) {
    throw Error(path + ": damaged: " + error.what());
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  // From here on these are the bytes that were written: what does not fit is
  // not damaged, but another program's.
  try {
    return state_of(json);
  } catch (const Error& error) {
    throw Unreadable(path +
                     ": is not of this program's version: " + error.what());
  }
}

CheckpointState read_state(const std::filesystem::path& folder) {
  const std::string path = folder / kStateFile;
  return parse_state(read_text(path), path);
}

}  // namespace reformer
