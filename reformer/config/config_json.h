// Configs as JSON: nested objects by the dots of the keys, comments allowed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reformer/config/config.h"

namespace reformer {

// Reads `text` on top of the defaults. `source` names the file in errors. An
// unknown key, a wrong type or malformed JSON throws Error; for an unknown key
// it suggests the nearest one. Values are not checked against each other.
//
// "base": "text" begins with another config instead of the defaults: `base_of`
// gives it, by its name.
using BaseConfig = std::function<Config(const std::string& name)>;
Config config_from_json(const std::string& text, const std::string& source,
                        const BaseConfig& base_of = {});

// All settings, in the order of their lists, with two spaces of indentation;
// config_from_json reads it back to the same config.
std::string config_to_json(const Config& config);

// Applies "key=value", as --set does; the value is written as on the command
// line (lists: 64,64,3).
void set_config_value(Config& config, const std::string& assignment);

// What a setting is called now: another name where older programs had this one.
std::string current_key(const std::string& key);

// Every key with its value in `config`, as a rule its default, what it may be
// and what it means, for help texts.
struct SettingHelp {
  std::string key;
  std::string value;  // as --set takes it
  std::string type;   // "a whole number", "one of relu, gelu"
  std::string meaning;
};
std::vector<SettingHelp> settings_help(Config config = {});

}  // namespace reformer
