// The command line: parsed, not run. Arguments are separated by NULs.
#include <sstream>

#include "cli/commands/commands.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  const std::vector<std::string> lines = {
      "train text --out runs/a --set train.steps=3 --device cpu --threads 2",
      "train --resume --out runs/a --data file.txt",
      "eval runs/a --split test --json",
      "export runs/a --out model.safetensors",
      "generate runs/a --prompt-file p --length 10 --temperature 0.5 --top-k 3",
      "generate runs/a --prompt a --stop b --stop c --json --show-prompt",
      "generate runs/a --interactive --repetition-penalty 1.1 --hide-prompt",
      "plot runs/a runs/b --metric train/loss --out a.svg",
      "plot runs/a --attention --layer 1 --head 2 --round 1",
      "info text --json",
      "bench attention --length 33,64 --rounds 1,2 --heads 2 --repeats 1",
      "bench peak --json",
      "reproduce figure4 --quick --out x --seeds 2 --rounds 1,2",
      "--help",
      "--version",
      "tarin --oot 3"};
  std::vector<std::string> seeds;
  for (std::string line : lines) {
    for (char& c : line) c = c == ' ' ? '\0' : c;
    seeds.push_back(line);
  }
  return seeds;
}

std::vector<std::string> arguments_in(const std::string& input) {
  std::vector<std::string> arguments;
  std::istringstream words(input);
  for (std::string word; std::getline(words, word, '\0');) {
    arguments.push_back(word);
  }
  return arguments;
}

// One for all inputs, since it takes long to make; parsing clears it.
struct Program {
  CLI::App app{"A program", "reformer"};
  cli::Action action;
  Program() { cli::add_commands(app, action); }
};

void execute(const std::string& input) {
  static Program program;
  const auto arguments = arguments_in(input);
  std::vector<const char*> argv = {"reformer"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  try {
    program.app.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::CallForHelp&) {
    law(!program.app.help().empty(), "there is help");
  } catch (const CLI::CallForVersion& version) {
    law(version.what() != std::string(), "there is a version");
  } catch (const CLI::ParseError& error) {
    law(!cli::advice_on(program.app, error).empty(), "there is advice");
  }
}

const Registered registered({"command_line", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
