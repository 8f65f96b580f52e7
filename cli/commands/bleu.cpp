#include "cli/commands/bleu.h"

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/generate/prompt.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "reformer/base/errors.h"
#include "reformer/base/utf8.h"
#include "reformer/score/bleu.h"

namespace reformer::cli {
namespace {

struct BleuCommand {
  std::string hypothesis = "-";
  std::string reference;
  std::string tokenize = "13a";
  bool lowercase = false;
  int64_t digits = 1;
  bool json = false;
};

std::string name_of(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

// The end of the last line may be missing. Each is checked here, where its
// place is known.
std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream rest(contents_of(path));
  for (std::string line; std::getline(rest, line);) {
    lines.push_back(line);
    require(is_utf8(line), name_of(path), ": text in UTF-8 is required, line ",
            lines.size(), " is not");
  }
  return lines;
}

std::string json_line(const Bleu& bleu, const BleuOptions& options,
                      int digits) {
  nlohmann::ordered_json json;
  json["name"] = "BLEU";
  json["score"] = std::strtod(fixed(bleu.score, digits).c_str(), nullptr);
  json["signature"] = bleu_signature(options);
  json["verbose_score"] = bleu_details(bleu);
  json["precisions"] = bleu.precisions;
  json["brevity_penalty"] = bleu.brevity_penalty;
  json["hypothesis_length"] = bleu.hypothesis_length;
  json["reference_length"] = bleu.reference_length;
  return json.dump() + "\n";
}

void run_bleu(const BleuCommand& command) {
  require(command.hypothesis != "-" || command.reference != "-",
          "bleu: standard input can be the hypothesis or the reference, not "
          "both");
  const auto hypotheses = lines_of(command.hypothesis);
  const auto references = lines_of(command.reference);
  require(hypotheses.size() == references.size(), name_of(command.hypothesis),
          " has ", hypotheses.size(), " lines and ", name_of(command.reference),
          " has ", references.size(), "; as many are required");
  const BleuOptions options{command.tokenize == "intl" ? BleuTokenization::kIntl
                                                       : BleuTokenization::k13a,
                            command.lowercase};
  const auto bleu = corpus_bleu(hypotheses, references, options);
  const auto digits = static_cast<int>(command.digits);
  print(command.json ? json_line(bleu, options, digits)
                     : bleu_line(bleu, options, digits) + "\n");
}

}  // namespace

void add_bleu(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "bleu", "Score translations as sacreBLEU does, with its signature");
  const auto options = std::make_shared<BleuCommand>();
  command.add_option("HYPOTHESIS", options->hypothesis,
                     "translations, one a line; -: standard input");
  command
      .add_option("--reference", options->reference,
                  "what they should be, as many lines")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option("--tokenize", options->tokenize,
                  "13a: ASCII's punctuation apart (WMT's); intl: Unicode's "
                  "punctuation and symbols (the paper's)")
      ->check(one_of({"13a", "intl"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_flag("--lowercase", options->lowercase,
                   "upper and lower case are the same");
  command.add_option("--width", options->digits, "digits behind the point")
      ->check(whole_number(0, 15))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--json", options->json, "one JSON object on stdout");
  command.callback(
      [options, &action] { action = [options] { run_bleu(*options); }; });
}

}  // namespace reformer::cli
