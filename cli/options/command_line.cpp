#include "cli/options/command_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "reformer/base/nearest_name.h"

namespace reformer::cli {
namespace {

std::string joined(const std::vector<std::string>& names,
                   const std::string& between) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  const auto any = [](const CLI::App*) { return true; };
  for (const auto* sub : app.get_subcommands(any)) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "; did you mean X?", or nothing where no name is near.
std::string suggestion(const std::string& given,
                       const std::vector<std::string>& names) {
  const auto nearest = nearest_name(given, names);
  return nearest ? "; did you mean " + *nearest + "?" : "";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool takes_value = option->get_type_size() > 0;
    return takes_value ? " " + option->get_type_name() : "";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str();
    return option->get_description() +
           (value.empty() ? "" : " [" + value + "]");
  }
};

std::string see_help(const CLI::App& command) {
  std::string path = command.get_name();
  for (auto* up = command.get_parent(); up != nullptr; up = up->get_parent()) {
    path = up->get_name() + " " + path;
  }
  return "; see " + path + " --help";
}

std::string advice_on_unknown(const CLI::App& command,
                              const std::vector<std::string>& unknown) {
  // The value of an unknown option is unknown too, and not the culprit.
  const auto option =
      std::find_if(unknown.begin(), unknown.end(),
                   [](const auto& word) { return word.starts_with("-"); });
  const bool is_option = option != unknown.end();
  std::string word = is_option ? *option : unknown.front();
  word = word.substr(0, word.find('='));
  const auto known = is_option ? options_of(command) : subcommands_of(command);
  const std::string advice = suggestion(word, known);
  const std::string kind = is_option       ? "unknown option "
                           : known.empty() ? "unexpected argument "
                                           : "unknown command ";
  return kind + word + (advice.empty() ? see_help(command) : advice);
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end) return {};
  return value;
}

}  // namespace

CLI::Validator whole_number(int64_t least, int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    const bool whole = fault == std::errc() && stop == end;
    if (whole && value >= least && value <= most) return "";
    return "a whole number from " + std::to_string(least) + " to " +
           std::to_string(most) + " is required, got '" + text + "'";
  };
  return CLI::Validator(check, "");
}

CLI::Validator number(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    const auto value = number_of(text);
    if (value && *value >= least && *value <= most) return "";
    std::ostringstream range;
    range << "a number from " << least << " to " << most;
    return range.str() + " is required, got '" + text + "'";
  };
  return CLI::Validator(check, "");
}

CLI::Validator positive_number() {
  const auto check = [](const std::string& text) -> std::string {
    const auto value = number_of(text);
    if (value && *value > 0 && std::isfinite(*value)) return "";
    return "a number above 0 is required, got '" + text + "'";
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> names) {
  const auto check = [names](const std::string& text) -> std::string {
    if (std::find(names.begin(), names.end(), text) != names.end()) return "";
    return joined(names, " or ") + " is required, got '" + text + "'";
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "a name is required, got an empty one" : "";
  };
  return CLI::Validator(check, "");
}

void add_new_folder(CLI::App& command, std::string& directory) {
  command.add_option("--out", directory, "folder to make")
      ->required()
      ->check(not_empty())
      ->type_name("DIR");
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::string advice_on(const CLI::App& app, const CLI::ParseError& error) {
  const auto unknown = app.remaining(/*recurse=*/true);
  const CLI::App& command = deepest_command(app);
  if (!unknown.empty()) return advice_on_unknown(command, unknown);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string message = error.what();
    const std::string option = message.substr(0, message.find(':'));
    return option + ": a value is required" + see_help(command);
  }
  return error.what() + see_help(command);
}

const CLI::App& deepest_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

std::string command_names(const CLI::App& app) {
  return joined(subcommands_of(app), ", ");
}

}  // namespace reformer::cli
