// Configs by name: those of configs/, which the library carries inside it, and
// files.
#pragma once

#include <string>
#include <vector>

#include "reformer/config/config.h"

namespace reformer {

// The names of the embedded configs, in alphabetical order.
std::vector<std::string> config_names();

// An embedded config by its bare name ("text"), or else a JSON file by its
// path. A name wins over a file of the same name: write ./text for that. Throws
// Error for what is neither, or is not a config; values are not checked
// against each other (see check).
//
// "base": NAME in a config begins with the settings of another: an embedded one
// by its name, or a file by its path, from the folder of the config that names
// it.
Config load_config(const std::string& name_or_path);

}  // namespace reformer
