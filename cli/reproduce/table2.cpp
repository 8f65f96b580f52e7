#include "cli/reproduce/table2.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/options/config_options.h"
#include "cli/process/machine.h"
#include "cli/process/stop_signal.h"
#include "cli/reproduce/figure.h"
#include "cli/reproduce/train_or_resume.h"
#include "cli/screen/output.h"
#include "reformer/config/config_library.h"
#include "reformer/io/checkpoint.h"
#include "reformer/tasks/task.h"
#include "reformer/train/evaluation.h"

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFull = 0;  // rounds: full attention instead
constexpr std::array<int64_t, 4> kTrained = {kFull, 4, 2, 1};
constexpr std::array<int64_t, 5> kEvaluated = {kFull, 8, 4, 2, 1};

// In percent; a row for each of kTrained, a column for each of kEvaluated.
constexpr double kPaper[4][5] = {{100, 94.8, 92.5, 76.9, 52.5},
                                 {0.8, 100, 99.9, 99.4, 91.9},
                                 {0.8, 100, 99.9, 98.1, 86.8},
                                 {0.8, 99.9, 99.6, 94.8, 77.9}};

constexpr int64_t kMostSeeds = 99;

struct Table2Options {
  std::string out = "runs/table2";
  int64_t steps = 0;  // 0: the config's
  int64_t seeds = 3;
  std::vector<std::string> assignments;
  bool quick = false;
  std::string device = "auto";
  int64_t threads = 0;
};

std::string name_of_rounds(int64_t rounds) {
  return rounds == kFull ? "full" : "lsh-" + std::to_string(rounds);
}

// Full attention is full_shared_qk: it has the parameters of LSH attention, so
// that a model trained with one can be evaluated with the other.
void set_attention(Config& config, int64_t rounds) {
  config.model.attention =
      rounds == kFull ? AttentionKind::kFullSharedQk : AttentionKind::kLsh;
  if (rounds != kFull) config.lsh.rounds = rounds;
}

Config base_config(const Table2Options& options) {
  Config config = load_config("duplication");
  if (options.quick) {
    config.train.length = 128;
    config.train.batch = 8;
    config.train.steps = 1200;
    config.train.warmup = 300;
    config.train.evaluate_every = 200;
    config.train.checkpoint_every = 200;
    config.lsh.chunk_length = 16;
    config.lsh.n_buckets = 16;
  }
  if (options.steps > 0) config.train.steps = options.steps;
  set_values(config, options.assignments);
  return config;
}

// The middle one, or the mean of the two in the middle.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

// One cell: an accuracy in percent for each seed.
using Cell = std::vector<double>;

std::string median_beside(const Cell& cell, double paper) {
  char text[64];
  const double printed = std::round(median(cell) * 10) / 10;
  std::snprintf(text, sizeof(text), "%.1f (%5.1f)%s", printed, paper,
                printed < paper - 0.01 ? "<" : " ");
  return text;
}

std::string range_of(const Cell& cell) {
  char text[64];
  const auto [least, most] = std::minmax_element(cell.begin(), cell.end());
  std::snprintf(text, sizeof(text), "%.1f to %.1f ", *least, *most);
  return text;
}

class Table2 {
 public:
  explicit Table2(const Table2Options& options)
      : options_(options),
        device_(use_machine(options.device, options.threads)) {}

  void run() {
    const auto& stop = stop_requested();
    fs::create_directories(options_.out);
    print("Table 2 into " + options_.out + ", " + describe_machine(device_) +
          "\n");
    for (int64_t seed = 0; seed < options_.seeds; ++seed) {
      for (size_t row = 0; row < kTrained.size(); ++row) {
        const Run run{row, base_config(options_).train.seed + seed};
        if (!train(run, stop) || !evaluate_run(run, stop)) {
          print("stopped and saved; go on with the same command\n");
          throw Interrupted();
        }
      }
    }
    report();
  }

 private:
  struct Run {
    size_t row;
    int64_t seed;
  };

  fs::path folder_of(const Run& run) const {
    return fs::path(options_.out) /
           ("trained-" + name_of_rounds(kTrained[run.row])) /
           ("seed-" + std::to_string(run.seed));
  }

  // False when it was asked to stop.
  bool train(const Run& run, const std::atomic<bool>& stop) const {
    Config config = base_config(options_);
    set_attention(config, kTrained[run.row]);
    config.train.seed = run.seed;
    return train_or_resume(
        {"training with " + name_of_rounds(kTrained[run.row]) +
             " attention, seed " + std::to_string(run.seed),
         folder_of(run).string(), config},
        device_, stop);
  }

  // With the last parameters, not the best, as in the paper. False when it was
  // asked to stop.
  bool evaluate_run(const Run& run, const std::atomic<bool>& stop) {
    const auto checkpoint = load_latest_model(folder_of(run).string());
    steps_[run.row] = checkpoint->step;
    for (size_t column = 0; column < kEvaluated.size(); ++column) {
      if (stop) return false;
      Config config = checkpoint->config;
      set_attention(config, kEvaluated[column]);
      LanguageModel model(
          config, placement_of_trained(device_, config.train.precision));
      load_parameters(model, checkpoint->parameters);
      accuracy_[run.row][column].push_back(
          100 * evaluate(model, *make_task(config),
                         {Split::kTest, /*batches=*/0, config.lsh.rounds})
                    .accuracy);
    }
    return true;
  }

  void report() const {
    print("\naccuracy in percent on the second half: the median of " +
          std::to_string(options_.seeds) +
          " seeds (the paper's; <: ours is below), then least and most\n" +
          table());
    write_figure({options_.out, "table2", json_lines(), script(), {1000, 560}});
  }

  std::string table() const {
    std::ostringstream text;
    const auto add_line = [&](const std::string& name, const auto& cell_text) {
      text << std::left << std::setw(13) << name << std::right;
      for (size_t column = 0; column < kEvaluated.size(); ++column) {
        text << std::setw(17) << cell_text(column);
      }
      text << "\n";
    };
    add_line("trained with", [](size_t column) {
      return name_of_rounds(kEvaluated[column]) + " ";
    });
    for (size_t row = 0; row < kTrained.size(); ++row) {
      add_line(name_of_rounds(kTrained[row]), [&](size_t column) {
        return median_beside(accuracy_[row][column], kPaper[row][column]);
      });
      if (options_.seeds == 1) continue;
      add_line("",
               [&](size_t column) { return range_of(accuracy_[row][column]); });
    }
    return text.str();
  }

  std::string json_lines() const {
    std::string lines;
    const Config config = base_config(options_);
    for (size_t row = 0; row < kTrained.size(); ++row) {
      for (size_t column = 0; column < kEvaluated.size(); ++column) {
        nlohmann::ordered_json json;
        json["trained"] = name_of_rounds(kTrained[row]);
        json["evaluated"] = name_of_rounds(kEvaluated[column]);
        json["accuracy"] = median(accuracy_[row][column]);
        json["seeds"] = accuracy_[row][column];
        json["paper"] = kPaper[row][column];
        json["length"] = config.train.length;
        json["warmup"] = config.train.warmup;
        json["steps"] = steps_[row];
        json["device"] = device_.is_cpu() ? "cpu" : "cuda";
        lines += json.dump() + "\n";
      }
    }
    return lines;
  }

  // Ours as lines over the rounds at evaluation, the paper's dashed.
  Script script() const {
    Script text;
    for (size_t row = 0; row < kTrained.size(); ++row) {
      text << "$row" << row << " << EOD\n";
      for (size_t column = 0; column < kEvaluated.size(); ++column) {
        text << column << " " << median(accuracy_[row][column]) << " "
             << kPaper[row][column] << "\n";
      }
      text << "EOD\n";
    }
    text
        << "set title 'Duplication task: ours (lines) and the paper (dashed)'\n"
           "set ylabel 'accuracy, %'\nset yrange [0:105]\n"
           "set xlabel 'attention at evaluation'\nset key bottom left\n"
           "set grid ytics\nset xrange [-0.2:4.2]\nset xtics (";
    for (size_t column = 0; column < kEvaluated.size(); ++column) {
      if (column > 0) text << ", ";
      text << Quoted(name_of_rounds(kEvaluated[column])) << " " << column;
    }
    text << ")\nplot ";
    for (size_t row = 0; row < kTrained.size(); ++row) {
      if (row > 0) text << ", ";
      text << "$row" << row << " using 1:2 with linespoints lw 2 pt 7 lc "
           << row + 1 << " title "
           << Quoted("trained with " + name_of_rounds(kTrained[row]))
           << ", $row" << row << " using 1:3 with lines dt 2 lc " << row + 1
           << " notitle";
    }
    return text << "\n";
  }

  const Table2Options options_;
  const at::Device device_;
  Cell accuracy_[kTrained.size()][kEvaluated.size()];
  int64_t steps_[kTrained.size()] = {};
};

}  // namespace

void add_reproduce_table2(CLI::App& reproduce, Action& action) {
  auto& app = *reproduce.add_subcommand(
      "table2",
      "the duplication task with full attention and 8, 4, 2, 1 hash rounds");
  const auto options = std::make_shared<Table2Options>();
  app.add_option("--out", options->out,
                 "folder of its runs; what is trained is not trained again")
      ->check(not_empty())
      ->take_last()
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--quick", options->quick,
               "sequences of 128 instead of 1024: minutes on a CPU");
  app.add_option("--steps", options->steps, "of each run [20000; quick: 1200]")
      ->check(whole_number(1, kMaxLength))
      ->take_last()
      ->type_name("N");
  app.add_option("--seeds", options->seeds,
                 "runs of each row, whose seeds follow train.seed")
      ->check(whole_number(1, kMostSeeds))
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
  add_set_option(app, options->assignments);
  add_machine_options(app, options->device, options->threads);
  app.callback(
      [options, &action] { action = [options] { Table2(*options).run(); }; });
}

}  // namespace reformer::cli
