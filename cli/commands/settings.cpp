#include "cli/commands/settings.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/base/nearest_name.h"
#include "reformer/config/config_json.h"

namespace reformer::cli {
namespace {

struct SettingsOptions {
  std::string key;
  bool markdown = false;
  bool json = false;
};

// All that begin with `key`: "model.layers", "model", "train.".
std::vector<SettingHelp> chosen(const std::string& key) {
  const auto all = settings_help();
  std::vector<SettingHelp> found;
  std::vector<std::string> keys;
  for (const auto& setting : all) {
    keys.push_back(setting.key);
    if (setting.key == key) return {setting};
    if (setting.key.starts_with(key)) found.push_back(setting);
  }
  require(!found.empty(), "unknown setting '", key, "'",
          nearest_hint(key, keys), "; without KEY all are listed");
  return found;
}

// Words that are broken at 80 columns, from the column `indent` on.
std::string wrapped(const std::string& text, size_t indent) {
  constexpr size_t kColumns = 80;
  std::string result(indent, ' ');
  size_t column = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t size = end - begin;
    if (column > indent && column + 1 + size > kColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(begin, size);
    column += size;
    begin = end + 1;
  }
  return result + "\n";
}

std::string shown(const SettingHelp& setting) {
  const std::string value = setting.value.empty() ? "(empty)" : setting.value;
  return setting.key + " = " + value + "\n" +
         wrapped(setting.type + ". " + setting.meaning, 4);
}

// A | would end a cell.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  return text;
}

std::string markdown_of(const std::vector<SettingHelp>& settings) {
  std::string text =
      "| setting | default | kind | meaning |\n| --- | --- | --- | --- |\n";
  for (const auto& [key, value, type, meaning] : settings) {
    text += "| `" + key + "` | " + (value.empty() ? "" : "`" + value + "`") +
            " | " + cell(type) + " | " + cell(meaning) + " |\n";
  }
  return text;
}

void run_settings(const SettingsOptions& options) {
  const auto settings = chosen(options.key);
  if (options.markdown) return print(markdown_of(settings));
  for (const auto& setting : settings) {
    if (options.json) {
      const nlohmann::ordered_json row = {{"key", setting.key},
                                          {"default", setting.value},
                                          {"type", setting.type},
                                          {"meaning", setting.meaning}};
      print(row.dump() + "\n");
    } else {
      print(shown(setting));
    }
  }
}

}  // namespace

void add_settings(CLI::App& app, Action& action) {
  auto& command =
      *app.add_subcommand("settings", "List the settings of configs and --set");
  const auto options = std::make_shared<SettingsOptions>();
  command.add_option("KEY", options->key,
                     "one setting, or all that begin so: train, model.axial");
  auto* markdown = command.add_flag("--markdown", options->markdown,
                                    "as a table of Markdown");
  command.add_flag("--json", options->json, "one JSON object a line on stdout")
      ->excludes(markdown);
  command.callback(
      [options, &action] { action = [options] { run_settings(*options); }; });
}

}  // namespace reformer::cli
