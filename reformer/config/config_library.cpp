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

// Bases of bases of a config, at most so many: two that name each other have no
// end.
constexpr int kMostBases = 8;

Config load(const std::string& name_or_path, const std::string& folder,
            int bases);

// What a config in `folder` may name as its base.
BaseConfig base_in(const std::string& folder, int bases) {
  return [folder, bases](const std::string& name) {
    require(bases < kMostBases, "base: at most ", kMostBases,
            " configs may build on each other");
    return load(name, folder, bases + 1);
  };
}

Config config_in_file(const std::string& path, int bases) {
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
  const auto slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return config_from_json(text, path, base_in(folder, bases));
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
  throw Error("unknown config '" + name + "'" +
              nearest_hint(name, config_names()) + "; there are " + known +
              ", or give the path of a file");
}

Config load(const std::string& name_or_path, const std::string& folder,
            int bases) {
  for (const auto& config : embedded_configs()) {
    if (name_or_path == config.name) {
      return config_from_json(config.json, config.name, base_in("", bases));
    }
  }
  const std::string path =
      name_or_path.starts_with('/') ? name_or_path : folder + name_or_path;
  if (!is_path(path)) throw_unknown(name_or_path);
  return config_in_file(path, bases);
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
  return load(name_or_path, /*folder=*/"", /*bases=*/0);
}

}  // namespace reformer
