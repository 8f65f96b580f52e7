#include "cli/reproduce/table4.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/options/config_options.h"
#include "cli/process/machine.h"
#include "cli/process/stop_signal.h"
#include "cli/reproduce/figure.h"
#include "cli/reproduce/statistics.h"
#include "cli/reproduce/train_or_resume.h"
#include "cli/screen/open_task.h"
#include "cli/screen/output.h"
#include "cli/screen/progress.h"
#include "cli/translate/translate_split.h"
#include "cli/translate/translation_options.h"
#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"
#include "reformer/config/config_library.h"
#include "reformer/io/average.h"
#include "reformer/io/checkpoint_folder.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/train/evaluation.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kBleuFile = "table4-bleu.json";

// The blocks that are compared, and what the paper has beside them (base
// models, newstest2014; no standard errors there).
struct Row {
  const char* name;
  BlockKind block;
  const char* paper;
};
constexpr std::array<Row, 2> kRows = {
    Row{"plain", BlockKind::kResidual, "27.3 (Vaswani et al., not sacreBLEU)"},
    Row{"reversible", BlockKind::kReversible,
        "27.6 (likewise); sacreBLEU 26.9 cased"}};

struct Table4Options {
  std::string out = "runs/table4";
  std::string config;  // empty: by --quick
  std::string data;
  int64_t steps = 0;  // 0: the config's
  int64_t seeds = 3;
  int64_t last = 0;  // 0: the config's train.keep
  int64_t beam = 4;
  double length_penalty = 0.6;
  bool quick = false;
  std::vector<std::string> assignments;
  std::string device = "auto";
  int64_t threads = 0;
};

// A made language that a CPU learns in minutes, not quite: models of no errors
// could not be told apart.
void make_quick(Config& config) {
  config.train.steps = 400;
  config.train.evaluate_every = 200;
  config.train.checkpoint_every = 40;
  config.train.keep = 3;
}

Config base_config(const Table4Options& options) {
  const char* name = options.quick ? "translation-toy" : "multi30k-en-de";
  Config config = load_config(options.config.empty() ? name : options.config);
  if (options.quick) make_quick(config);
  if (!options.data.empty()) config.task.data = options.data;
  if (options.steps > 0) config.train.steps = options.steps;
  if (options.last > 0) config.train.keep = options.last;
  set_values(config, options.assignments);
  require(config.model.encoder_layers > 0,
          "reproduce table4: a config of translation is required, ",
          "model.encoder_layers is 0");
  make_paths_absolute(config.task);
  return config;
}

std::string with_error(const Estimate& estimate) {
  char text[64];
  if (std::isnan(estimate.standard_error)) {
    std::snprintf(text, sizeof(text), "%.2f", estimate.mean);
  } else {
    std::snprintf(text, sizeof(text), "%.2f ± %.2f", estimate.mean,
                  estimate.standard_error);
  }
  return text;
}

class Table4 {
 public:
  explicit Table4(const Table4Options& options)
      : options_(options),
        base_(base_config(options)),
        device_(use_machine(options.device, options.threads)) {}

  void run() {
    const auto& stop = stop_requested();
    fs::create_directories(options_.out);
    print("Table 4 into " + options_.out + ", " + describe_machine(device_) +
          "\n");
    try {
      for (int64_t seed = 0; seed < options_.seeds; ++seed) {
        for (std::size_t row = 0; row < kRows.size(); ++row) {
          const Run run{row, base_.train.seed + seed};
          if (!train_or_resume({title_of(run), folder_of(run), config_of(run)},
                               device_, stop)) {
            throw Interrupted();
          }
          scores_[row].push_back(score_of(run));
        }
      }
    } catch (const Interrupted&) {
      print("stopped and saved; go on with the same command\n");
      throw;
    }
    report();
  }

 private:
  struct Run {
    std::size_t row;
    int64_t seed;
  };

  std::string title_of(const Run& run) const {
    return std::string("training the ") + kRows[run.row].name +
           " model, seed " + std::to_string(run.seed);
  }

  std::string folder_of(const Run& run) const {
    return (fs::path(options_.out) / kRows[run.row].name /
            ("seed-" + std::to_string(run.seed)))
        .string();
  }

  Config config_of(const Run& run) const {
    Config config = base_;
    config.model.block = kRows[run.row].block;
    config.train.seed = run.seed;
    return config;
  }

  // What a score depends on besides the run: it is not computed twice.
  Json key_of(const std::vector<std::string>& checkpoints) const {
    Json key;
    key["checkpoints"] = Json::array();
    for (const auto& folder : checkpoints) {
      key["checkpoints"].push_back(fs::path(folder).filename().string());
    }
    key["beam"] = options_.beam;
    key["length_penalty"] = options_.length_penalty;
    key["signature"] = bleu_signature({});
    return key;
  }

  // BLEU of the test split by the mean of the run's last checkpoints.
  double score_of(const Run& run) const {
    const auto folder = folder_of(run);
    const auto checkpoints = last_checkpoints(folder, averaged_of(folder));
    const auto key = key_of(checkpoints);
    const auto file = fs::path(folder) / kBleuFile;
    if (fs::exists(file)) {
      const auto known = parse_json<Json>(read_text(file));
      if (known.is_object() && known.contains("bleu") &&
          known["bleu"].is_number() && known.value("of", Json()) == key) {
        return known["bleu"].get<double>();
      }
    }
    const auto bleu = translated(run, checkpoints);
    Json json;
    json["bleu"] = bleu.score;
    json["of"] = key;
    write_file_atomically(file, json.dump(2) + "\n");
    return bleu.score;
  }

  // As many as it keeps; a short run has fewer.
  int64_t averaged_of(const std::string& folder) const {
    return std::min<int64_t>(base_.train.keep,
                             std::ssize(checkpoints_in(folder)));
  }

  Bleu translated(const Run& run,
                  const std::vector<std::string>& checkpoints) const {
    auto checkpoint = average_checkpoints(checkpoints);
    auto config = checkpoint.config;
    const auto tokenizer = open_tokenizer(config, &stop_requested());
    const auto task = open_task(config, &stop_requested(), tokenizer);
    EncoderDecoder model(config,
                         placement_for_use(device_, config.train.precision));
    load_parameters(model, checkpoint.parameters);
    TranslatorConfig search;
    search.beam = options_.beam;
    search.length_penalty = options_.length_penalty;
    search.batch = translation_batch(device_);
    Report report(/*json=*/false);
    const auto found = translate_split(
        model, *task, Split::kTest, search,
        TimedProgress(report, "translating the test split, " +
                                  std::string(kRows[run.row].name) +
                                  " model, seed " + std::to_string(run.seed)));
    report.text(std::string(kRows[run.row].name) + ", seed " +
                std::to_string(run.seed) + ": " + found.line() + "\n");
    return found.bleu;
  }

  void report() const {
    const auto difference = estimate_difference(scores_[1], scores_[0]);
    std::string text = "\nBLEU of the test split, " + bleu_signature({}) +
                       ",\nthe mean of the last " +
                       std::to_string(base_.train.keep) +
                       " checkpoints, or as many as there are, beam " +
                       std::to_string(options_.beam) + ": the mean of " +
                       std::to_string(options_.seeds) +
                       (options_.seeds == 1 ? " seed" : " seeds") +
                       " ± its standard error (the paper's, WMT14 "
                       "English-German, base)\n";
    for (std::size_t row = 0; row < kRows.size(); ++row) {
      char line[256];
      std::snprintf(line, sizeof(line), "  %-12s %-16s (%s)\n", kRows[row].name,
                    with_error(estimate(scores_[row])).c_str(),
                    kRows[row].paper);
      text += line;
    }
    text +=
        "  reversible - plain, seed by seed: " + with_error(difference) + "\n";
    print(text);
    write_figure({options_.out, "table4", json_lines(), script(), {700, 480}});
  }

  std::string json_lines() const {
    std::string lines;
    for (std::size_t row = 0; row < kRows.size(); ++row) {
      const auto found = estimate(scores_[row]);
      Json json;
      json["model"] = kRows[row].name;
      json["bleu"] = found.mean;
      json["standard_error"] = found.standard_error;  // null of a single seed
      json["seeds"] = scores_[row];
      json["signature"] = bleu_signature({});
      json["beam"] = options_.beam;
      json["length_penalty"] = options_.length_penalty;
      json["averaged"] = base_.train.keep;
      json["steps"] = base_.train.steps;
      json["task"] = base_.task.name.name();
      json["paper"] = kRows[row].paper;
      json["device"] = device_.is_cpu() ? "cpu" : "cuda";
      lines += json.dump() + "\n";
    }
    return lines;
  }

  // A point for each seed, the mean as a line.
  Script script() const {
    Script text;
    for (std::size_t row = 0; row < kRows.size(); ++row) {
      const auto mean = estimate(scores_[row]).mean;
      const auto x = double(row);
      text << "$row" << row << " << EOD\n";
      for (const double score : scores_[row]) text << x << " " << score << "\n";
      text << "EOD\n$mean" << row << " << EOD\n"
           << x - 0.2 << " " << mean << "\n"
           << x + 0.2 << " " << mean << "\nEOD\n";
    }
    text << "set title 'Translation: BLEU of the test split, a point a seed'\n"
            "set ylabel 'BLEU'\nset xrange [-0.6:1.6]\nset grid ytics\n"
            "set offsets 0, 0, 0.5, 0.5\nunset key\nset xtics (";
    for (std::size_t row = 0; row < kRows.size(); ++row) {
      if (row > 0) text << ", ";
      text << Quoted(kRows[row].name) << " " << row;
    }
    text << ")\nplot ";
    for (std::size_t row = 0; row < kRows.size(); ++row) {
      if (row > 0) text << ", ";
      text << "$row" << row << " with points pt 7 lc " << row + 1 << ", $mean"
           << row << " with lines lw 2 lc " << row + 1;
    }
    return text << "\n";
  }

  const Table4Options options_;
  const Config base_;
  const at::Device device_;
  std::vector<double> scores_[kRows.size()];  // a seed each
};

void add_options(CLI::App& app, Table4Options& options) {
  app.add_option("--out", options.out,
                 "folder of its runs; what is trained is not trained again")
      ->check(not_empty())
      ->take_last()
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--quick", options.quick,
               "a made language instead of Multi30k: minutes on a CPU");
  app.add_option("--config", options.config,
                 "settings of both models [multi30k-en-de; quick: "
                 "translation-toy]")
      ->take_last()
      ->type_name("NAME");
  app.add_option("--data", options.data, "bitext: sets task.data")
      ->check(not_empty())
      ->take_last()
      ->type_name("PATH");
  const auto add = [&app](const char* name, int64_t& value, int64_t most,
                          const char* help) {
    return app.add_option(name, value, help)
        ->check(whole_number(1, most))
        ->take_last()
        ->type_name("N");
  };
  add("--steps", options.steps, kMaxLength, "of each run [the config's]");
  add("--seeds", options.seeds, 99,
      "runs of each model, whose seeds follow train.seed")
      ->capture_default_str();
  add("--last", options.last, 1000,
      "checkpoints that are averaged [the config's train.keep]");
  add("--beam", options.beam, 255, "hypotheses of a sentence")
      ->capture_default_str();
  app.add_option("--length-penalty", options.length_penalty, "as translate's")
      ->check(number(-100, 100))
      ->take_last()
      ->type_name("A")
      ->capture_default_str();
  add_set_option(app, options.assignments);
  add_machine_options(app, options.device, options.threads);
}

}  // namespace

void add_reproduce_table4(CLI::App& reproduce, Action& action) {
  auto& app = *reproduce.add_subcommand(
      "table4", "BLEU of plain and reversible encoder-decoders");
  const auto options = std::make_shared<Table4Options>();
  add_options(app, *options);
  app.callback(
      [options, &action] { action = [options] { Table4(*options).run(); }; });
}

}  // namespace reformer::cli
