#include "reformer/config/config_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/base/json_text.h"
#include "reformer/base/nearest_name.h"
#include "reformer/base/note.h"

namespace reformer {
namespace {

using Json = nlohmann::ordered_json;

void require_type(bool holds, const char* key, const char* type,
                  const Json& given) {
  require(holds, key, ": ", type, " is required, got ", excerpt(given));
}

bool is_int64(const Json& value) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= kMost);
}

void assign(const char* key, int64_t& setting, const Json& value) {
  require_type(is_int64(value), key, "a whole number", value);
  setting = value.get<int64_t>();
}

void assign(const char* key, double& setting, const Json& value) {
  require_type(value.is_number(), key, "a number", value);
  setting = value.get<double>();
}

void assign(const char* key, bool& setting, const Json& value) {
  require_type(value.is_boolean(), key, "true or false", value);
  setting = value.get<bool>();
}

void assign(const char* key, std::string& setting, const Json& value) {
  require_type(value.is_string(), key, "a string", value);
  setting = value.get<std::string>();
}

template <class E>
void assign(const char* key, Choice<E>& setting, const Json& value) {
  require_type(value.is_string(), key,
               ("one of " + setting.all_names()).c_str(), value);
  setting = value.get<std::string>();
}

void assign(const char* key, AttentionKinds& setting, const Json& value) {
  require_type(value.is_string(), key, "a string", value);
  setting = AttentionKinds(value.get<std::string>(), key);
}

void assign(const char* key, std::vector<int64_t>& setting, const Json& value) {
  bool holds = value.is_array();
  for (const auto& element : value) holds = holds && is_int64(element);
  require_type(holds, key, "a list of whole numbers", value);
  setting = value.get<std::vector<int64_t>>();
}

template <class T>
Json json_of(const T& setting) {
  return setting;
}
template <class E>
Json json_of(const Choice<E>& setting) {
  return setting.name();
}
Json json_of(const AttentionKinds& setting) { return setting.names(); }

// What a value on the command line is in JSON. Text that is not JSON stays a
// string, which `assign` refuses with a message that shows it.
Json parsed_or_string(const std::string& json, const std::string& text) {
  try {
    return parse_json<Json>(json);
  } catch (const JsonError&) {
    return text;
  }
}

template <class T>
Json json_of_text(const T&, const std::string& text) {
  return parsed_or_string(text, text);
}
Json json_of_text(const std::string&, const std::string& text) { return text; }
template <class E>
Json json_of_text(const Choice<E>&, const std::string& text) {
  return text;
}
Json json_of_text(const AttentionKinds&, const std::string& text) {
  return text;
}
Json json_of_text(const std::vector<int64_t>&, const std::string& text) {
  return parsed_or_string("[" + text + "]", text);
}

std::string type_of(int64_t) { return "a whole number"; }
std::string type_of(double) { return "a number"; }
std::string type_of(bool) { return "true or false"; }
std::string type_of(const std::string&) { return "text"; }
std::string type_of(const std::vector<int64_t>&) {
  return "whole numbers between commas";
}
std::string type_of(const AttentionKinds&) {
  return "names between commas: " + Choice<AttentionKind>::all_names();
}
template <class E>
std::string type_of(const Choice<E>&) {
  return "one of " + Choice<E>::all_names();
}

// The same the other way round.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const std::string list = value.dump();
  if (!value.is_array()) return list;
  return list.substr(1, list.size() - 2);
}

// Paths may hold any bytes, JSON only text.
void require_utf8(const std::string& key, const Json& value) {
  try {
    (void)value.dump();
  } catch (const Json::type_error&) {
    throw Error(key + ": text in UTF-8 is required, got " + excerpt(value));
  }
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  Config().visit(
      [&](const char* key, auto&, const char*) { keys.emplace_back(key); });
  return keys;
}

// Calls f(key, setting) for the setting of that key; false where none has it.
template <class F>
bool with_setting(Config& config, const std::string& key, const F& f) {
  bool found = false;
  config.visit([&](const char* name, auto& setting, const char*) {
    if (key != name) return;
    found = true;
    f(name, setting);
  });
  return found;
}

bool is_section(const std::string& key) {
  for (const auto& known : known_keys()) {
    if (known.starts_with(key + ".")) return true;
  }
  return false;
}

[[noreturn]] void throw_unknown(const std::string& key) {
  const std::string shown = shortened(key);
  throw Error("unknown key '" + shown + "'" +
              nearest_hint(shown, known_keys()));
}

// Settings that older programs called otherwise. What a value was called then
// is what it means now, but for those of `train.parameters`.
struct RenamedKey {
  const char* old_key;
  const char* key;
};
constexpr RenamedKey kRenamed[] = {{"task.symbols", "task.alphabet"},
                                   {"train.graph", "train.cuda_graph"},
                                   {"train.parameters", "train.offload"}};

Json renamed_value(const std::string& old_key, const Json& value) {
  if (old_key != "train.parameters") return value;
  require_type(value == "host" || value == "device", old_key.c_str(),
               "device or host", value);
  return value == "host";
}

// Takes an old key's new name, with a note.
void rename_key(std::string& key, Json& value) {
  for (const auto& renamed : kRenamed) {
    if (key != renamed.old_key) continue;
    value = renamed_value(key, value);
    note(key + " is now called " + renamed.key);
    key = renamed.key;
    return;
  }
}

void set_from_json(Config& config, std::string key, Json value) {
  rename_key(key, value);
  if (with_setting(config, key, [&](const char* name, auto& setting) {
        assign(name, setting, value);
      })) {
    return;
  }
  if (!is_section(key)) throw_unknown(key);
  require_type(value.is_object(), key.c_str(), "an object of settings", value);
}

void require_new(std::set<std::string>& seen, const std::string& key) {
  require(seen.insert(key).second, "the key '", key, "' is given twice");
}

void set_from_object(Config& config, const Json& root) {
  require(root.is_object(), "an object of settings is required, got ",
          excerpt(root));
  std::set<std::string> seen;  // "a": {"b": 1} and "a.b": 1 are the same key
  const auto set = [&](const std::string& key, const Json& value) {
    require_new(seen, key);
    set_from_json(config, key, value);
  };
  for (const auto& [key, value] : root.items()) {
    if (!value.is_object() || value.empty()) {
      set(key, value);
      continue;
    }
    for (const auto& [name, inner] : value.items())
      set(key + "." + name, inner);
  }
}

}  // namespace

Config config_from_json(const std::string& text, const std::string& source,
                        const BaseConfig& base_of) {
  Config config;
  JsonLimits limits;
  limits.comments = true;
  try {
    auto root = parse_json<Json>(text, limits);
    if (base_of && root.is_object() && root.contains("base")) {
      require_type(root["base"].is_string(), "base", "a config's name",
                   root["base"]);
      config = base_of(root["base"].get<std::string>());
      root.erase("base");
    }
    set_from_object(config, root);
  } catch (const Error& error) {
    throw Error(source + ": " + error.what());
  }
  return config;
}

std::string config_to_json(const Config& config) {
  Json root;
  Config copy = config;  // visited by reference
  copy.visit([&](const std::string& key, auto& setting, const char*) {
    const size_t dot = key.find('.');
    const Json value = json_of(setting);
    require_utf8(key, value);
    root[key.substr(0, dot)][key.substr(dot + 1)] = value;
  });
  return root.dump(2);
}

void set_config_value(Config& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  require(equals != std::string::npos, "key=value is required, got '",
          assignment, "'");
  const std::string key = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  for (const auto& renamed : kRenamed) {
    if (key == renamed.old_key) {
      set_from_json(config, key, parsed_or_string(text, text));
      return;
    }
  }
  const bool found =
      with_setting(config, key, [&](const char* name, auto& setting) {
        assign(name, setting, json_of_text(setting, text));
      });
  if (!found) throw_unknown(key);
}

std::string current_key(const std::string& key) {
  for (const auto& renamed : kRenamed) {
    if (key == renamed.old_key) return renamed.key;
  }
  return key;
}

std::vector<SettingHelp> settings_help(Config config) {
  std::vector<SettingHelp> help;
  config.visit([&](const char* key, auto& setting, const char* meaning) {
    help.push_back({key, text_of(json_of(setting)), type_of(setting), meaning});
  });
  return help;
}

}  // namespace reformer
