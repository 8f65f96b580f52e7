// The files of configs/, as cmake/embed_configs.sh puts them into the library.
#pragma once

#include <vector>

namespace reformer {

struct EmbeddedConfig {
  const char* name;  // of the file, without .json
  const char* json;  // its contents
};

std::vector<EmbeddedConfig> embedded_configs();

}  // namespace reformer
