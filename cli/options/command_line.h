// What the subcommands' options share: checks that speak plainly, and a word
// of advice on typing mistakes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace reformer::cli {

// What the command line asked for. Run after all of it has been parsed: a
// subcommand's own callback would run before its misspelt options are found.
using Action = std::function<void()>;

// Positions and places are 32-bit numbers.
inline constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

// Checks of an option's text, before it is converted.
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator positive_number();
CLI::Validator one_of(std::vector<std::string> names);
CLI::Validator not_empty();  // of a path

// --out DIR: a folder that the command makes.
void add_new_folder(CLI::App& command, std::string& directory);

// --help that shows an option as "--heads N" and its default after its purpose.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// One sentence on what is wrong with the command line, and the remedy.
std::string advice_on(const CLI::App& app, const CLI::ParseError& error);

// The subcommand that the command line named, `app` itself where it named none.
const CLI::App& deepest_command(const CLI::App& app);

// Its names of subcommands, joined: "attention, peak".
std::string command_names(const CLI::App& app);

}  // namespace reformer::cli
