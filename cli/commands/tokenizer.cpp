#include "cli/commands/tokenizer.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/timing.h"
#include "cli/screen/model_summary.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/data/byte_file.h"
#include "reformer/data/collection.h"
#include "reformer/data/tokenizer.h"

namespace reformer::cli {
namespace {

// Lines beyond are not read: more hardly change the pieces.
constexpr int64_t kMostLines = 4'000'000;

struct TrainOptions {
  std::vector<std::string> files;
  std::string out;
  int64_t vocabulary = 32000;
  std::string type = "bpe";
};

struct UseOptions {
  std::string model;
  bool pieces = false;
};

// The lines of files, folders and archives. A member's are collected before
// they are taken, since the archive hands them out and the trainer takes them
// in their own time.
std::vector<std::string> lines_of(const std::vector<std::string>& files,
                                  Report& report) {
  std::vector<std::string> lines;
  std::string line;
  std::vector<uint8_t> part(1 << 16);
  const auto end_line = [&] {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && std::ssize(lines) < kMostLines) lines.push_back(line);
    line.clear();
  };
  for (const auto& file : files) {
    report.progress("reading " + file);
    Collection collection(file);
    collection.for_each([&](const std::string&, ByteStream& member) {
      while (const size_t n = member.read(part)) {
        for (size_t i = 0; i < n; ++i) {
          if (part[i] == '\n') {
            end_line();
          } else {
            line += static_cast<char>(part[i]);
          }
        }
      }
      end_line();
    });
  }
  return lines;
}

void run_train(const TrainOptions& options) {
  const std::filesystem::path out(options.out);
  require(!std::filesystem::exists(out), options.out,
          ": exists already; choose another name");
  require(out.parent_path().empty() ||
              std::filesystem::is_directory(out.parent_path()),
          "cannot write ", options.out, ": its folder does not exist");
  Report report(/*json=*/false);
  const Stopwatch watch;
  const auto lines = lines_of(options.files, report);
  if (std::ssize(lines) == kMostLines) {
    report.note("only the first " + grouped(kMostLines) + " lines are used");
  }
  report.progress("making " + grouped(options.vocabulary) + " pieces of " +
                  grouped(std::ssize(lines)) + " lines");
  size_t next = 0;
  const std::string model = train_tokenizer(
      [&](std::string& line) {
        if (next == lines.size()) return false;
        line = lines[next++];
        return true;
      },
      {options.type == "bpe" ? PieceKind::kBpe : PieceKind::kUnigram,
       options.vocabulary});
  write_file_atomically(out, model);
  report.text(options.out + ": " +
              grouped(parse_tokenizer(model, options.out)->vocabulary_size()) +
              " pieces of " + grouped(std::ssize(lines)) + " lines in " +
              fixed(watch.seconds(), 1, " s\n"));
}

// As numbers, or with --pieces as they are written in the model.
void run_encode(const UseOptions& options) {
  const auto tokenizer = load_tokenizer(options.model);
  for (std::string line; std::getline(std::cin, line);) {
    std::string text;
    for (const int64_t token : tokenizer->encode(line)) {
      if (!text.empty()) text += ' ';
      text += options.pieces ? tokenizer->piece(token) : std::to_string(token);
    }
    print(text + "\n");
  }
}

int64_t number_in(const std::string& word) {
  int64_t token = -1;
  const char* end = word.data() + word.size();
  const auto [stop, fault] = std::from_chars(word.data(), end, token);
  require(fault == std::errc() && stop == end,
          "decode: numbers with spaces between them are required, got '", word,
          "'");
  return token;
}

void run_decode(const UseOptions& options) {
  const auto tokenizer = load_tokenizer(options.model);
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<int64_t> tokens;
    std::istringstream rest(line);
    for (std::string word; rest >> word;) {
      tokens.push_back(options.pieces ? tokenizer->token_of(word)
                                      : number_in(word));
      require(tokens.back() >= 0, "decode: '", word, "' is no piece of ",
              options.model);
    }
    print(tokenizer->decode(tokens) + "\n");
  }
}

void add_use(CLI::App& parent, Action& action, const char* name,
             const char* description, void (*run)(const UseOptions&)) {
  auto& command = *parent.add_subcommand(name, description);
  const auto options = std::make_shared<UseOptions>();
  command.add_option("MODEL", options->model, "a SentencePiece model")
      ->required()
      ->check(not_empty());
  command.add_flag("--pieces", options->pieces,
                   "tokens as pieces instead of numbers");
  command.callback(
      [options, run, &action] { action = [options, run] { run(*options); }; });
}

}  // namespace

void add_tokenizer(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "tokenizer", "Make a SentencePiece model of texts, and try it");
  auto& train = *command.add_subcommand(
      "train", "Make a .model, one for all languages of the files");
  const auto options = std::make_shared<TrainOptions>();
  train
      .add_option("FILE", options->files,
                  "texts: files, folders or archives of them")
      ->required()
      ->check(not_empty());
  train.add_option("--out", options->out, "the .model to write")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  train.add_option("--vocabulary", options->vocabulary, "pieces")
      ->check(whole_number(2, 1 << 24))
      ->type_name("N")
      ->capture_default_str();
  train
      .add_option("--type", options->type,
                  "bpe (pairs that are frequent are joined) or unigram (the "
                  "likeliest pieces are kept)")
      ->check(one_of({"bpe", "unigram"}))
      ->type_name("NAME")
      ->capture_default_str();
  train.callback(
      [options, &action] { action = [options] { run_train(*options); }; });
  add_use(command, action, "encode",
          "Lines of standard input to lines of tokens", run_encode);
  add_use(command, action, "decode", "And back", run_decode);
}

}  // namespace reformer::cli
