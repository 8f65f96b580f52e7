#include "reformer/config/config_library.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "reformer/base/errors.h"
#include "reformer/base/nearest_name.h"
#include "reformer/config/config_json.h"
#include "reformer/config/embedded_configs.h"

namespace reformer {
namespace {

constexpr size_t kMostBytes = 1 << 20;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void require_readable(bool readable, const std::string& path) {
  require(readable, "cannot read the config ", path, ": ",
          std::strerror(errno));
}

Config config_in_file(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  require_readable(file != nullptr, path);
  std::string text;
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, n);
    require(text.size() <= kMostBytes, "cannot read the config ", path,
            ": more than ", kMostBytes, " bytes are none");
  }
  // A directory opens, and fails only here.
  require_readable(!std::ferror(file.get()), path);
  return config_from_json(text, path);
}

bool is_path(const std::string& name_or_path) {
  struct stat found {};
  return name_or_path.find('/') != std::string::npos ||
         name_or_path.ends_with(".json") ||
         stat(name_or_path.c_str(), &found) == 0;
}

[[noreturn]] void throw_unknown(const std::string& name) {
  std::string known;
  for (const auto& each : config_names()) {
    known += (known.empty() ? "" : ", ") + each;
  }
  throw Error("unknown config '" + name + "', the nearest is " +
              nearest_name(name, config_names()) + "; there are " + known +
              ", or give the path of a file");
}

}  // namespace

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const auto& config : embedded_configs()) names.push_back(config.name);
  // The files' order is another: "a-b.json" comes before "a.json".
  std::sort(names.begin(), names.end());
  return names;
}

Config load_config(const std::string& name_or_path) {
  for (const auto& config : embedded_configs()) {
    if (name_or_path == config.name) {
      return config_from_json(config.json, config.name);
    }
  }
  if (!is_path(name_or_path)) throw_unknown(name_or_path);
  return config_in_file(name_or_path);
}

}  // namespace reformer
