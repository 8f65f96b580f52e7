#include "cli/commands/eval.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/draw/gnuplot.h"
#include "cli/draw/position_losses.h"
#include "cli/draw/repeat_losses.h"
#include "cli/options/config_options.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/open_task.h"
#include "cli/screen/output.h"
#include "cli/screen/progress.h"
#include "cli/screen/table.h"
#include "cli/translate/translate_split.h"
#include "cli/translate/translation_options.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/huggingface.h"
#include "reformer/kernels/top_tokens.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/model/prediction.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/repeats.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

struct EvalOptions {
  std::string directory;
  std::string data;
  std::vector<std::string> assignments;  // --set key=value
  std::string split = "validation";
  std::vector<int64_t> rounds = {0};
  int64_t batches = 0;
  std::vector<int64_t> lengths = {0};  // 0: as in training
  bool by_position = false;
  std::vector<int64_t> recall;  // distances
  std::string png;
  bool our_attention = false;
  std::string device = "auto";
  int64_t threads = 0;
  bool json = false;
  int64_t beam = 4;  // 0: no translations
  double length_penalty = 0.6;
};

// What is evaluated at a time.
struct Point {
  int64_t length;
  int64_t rounds;
};

std::string label_of(const Point& point) {
  return counted(point.length, "position") + ", " +
         counted(point.rounds, "round");
}

std::string line_of(const Task& task, const Point& point, const Evaluation& e) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "length %lld, rounds %lld: %s %.4f, accuracy %.2f%%\n",
                static_cast<long long>(point.length),
                static_cast<long long>(point.rounds),
                task.metric_name().c_str(), e.metric, e.accuracy * 100);
  return text;
}

// A folder's name may hold any bytes, JSON only text.
std::string line_of(const nlohmann::ordered_json& row) {
  constexpr auto kReplace = nlohmann::detail::error_handler_t::replace;
  return row.dump(-1, ' ', /*ensure_ascii=*/false, kReplace) + "\n";
}

// Shorter sequences for the same model: as many more of them in a batch.
Config task_config(const Config& trained, int64_t length) {
  Config config = trained;
  if (length == 0) return config;
  const int64_t most = longest_input(trained);
  require(most == 0 || length <= most, "--length: this model takes at most ",
          most, " positions, got ", length);
  config.train.length = length;
  config.train.batch =
      std::max<int64_t>(1, trained.train.batch * trained.train.length / length);
  check(config);
  return config;
}

// With 0 replaced by what it stands for, each once.
std::vector<int64_t> resolved(const std::vector<int64_t>& given, int64_t zero) {
  std::vector<int64_t> values;
  for (const int64_t value : given) {
    const int64_t meant = value > 0 ? value : zero;
    if (std::find(values.begin(), values.end(), meant) == values.end()) {
      values.push_back(meant);
    }
  }
  return values;
}

bool is_translation(const Config& config) {
  return config.task.name == TaskKind::kTranslation ||
         config.task.name == TaskKind::kTranslationToy;
}

// Before data is opened: which distances fit is known then.
void require_recallable(const Config& config,
                        const std::vector<int64_t>& distances,
                        const std::vector<int64_t>& lengths) {
  if (distances.empty()) return;
  require(config.task.name == TaskKind::kText,
          "--recall: a model of text is required, task.name is ",
          config.task.name);
  for (const int64_t length : lengths) {
    for (const int64_t distance : distances) {
      check_repeat_distance(length, distance);
    }
  }
}

struct Sequences {
  int64_t length;
  std::unique_ptr<Task> task;
};

std::vector<Sequences> sequences_of(const Checkpoint& checkpoint,
                                    const std::vector<int64_t>& lengths) {
  const Config& trained = checkpoint.config;
  const TaskConfig& task = trained.task;
  require(lengths.size() == 1 ||
              (task.data != "-" && task.validation != "-" && task.test != "-"),
          "--length: standard input can be read only once, got ",
          lengths.size(), " lengths; give a file");
  std::vector<Config> configs;  // all are checked before the first is opened
  for (const int64_t length : lengths) {
    configs.push_back(task_config(trained, length));
  }
  const auto tokenizer = run_tokenizer(trained, checkpoint.tokenizer);
  std::vector<Sequences> sequences;
  for (const auto& config : configs) {
    sequences.push_back(
        {config.train.length, open_task(config, &stop_requested(), tokenizer)});
  }
  return sequences;
}

// Evaluates one length and number of rounds after the other.
class Eval {
 public:
  explicit Eval(const EvalOptions& options)
      : options_(options),
        device_(use_machine(options.device, options.threads)),
        checkpoint_(loaded(options)),
        sequences_(sequences_of(
            checkpoint_,
            resolved(options.lengths, checkpoint_.config.train.length))),
        rounds_(resolved(options.rounds, checkpoint_.config.lsh.rounds)),
        model_(make_model(
            checkpoint_.config,
            placement_of_trained(device_, checkpoint_.config.train.precision))),
        split_(options.split == "test" ? Split::kTest : Split::kValidation),
        report_(options.json) {
    load_parameters(*model_, checkpoint_.parameters);
  }

  void run() {
    report_.text(options_.directory + ", step " +
                 std::to_string(checkpoint_.step) + ", " + options_.split +
                 " split" + (options_.our_attention ? ", our attention" : "") +
                 "\n");
    for (const auto& [length, task] : sequences_) {
      for (const int64_t rounds : rounds_) {
        evaluate_point(*task, {length, rounds});
      }
    }
    if (options_.png.empty()) return;
    draw_plot(script(), options_.png);
    report_.note("the plot is " + options_.png);
  }

 private:
  static Checkpoint loaded(const EvalOptions& options) {
    auto checkpoint = load_best_checkpoint(options.directory);
    auto& config = checkpoint.config;
    if (!options.data.empty()) config.task.data = options.data;
    set_values(config, options.assignments);
    if (options.our_attention) {
      require(config.model.attention.contains(AttentionKind::kLshHuggingface),
              "--our-attention: a model with lsh_huggingface is required, "
              "model.attention is ",
              config.model.attention);
      config = with_our_attention(config);
      check(config);
    }
    require_recallable(config, options.recall,
                       resolved(options.lengths, config.train.length));
    require(
        !options.by_position || !is_translation(config),
        "--by-position: a model of one long sequence is required, task.name "
        "is ",
        config.task.name);
    return checkpoint;
  }

  Script script() const {
    const auto title = options_.directory + ", " + options_.split + " split";
    const auto metric = sequences_[0].task->metric_name();
    if (options_.by_position) return position_script(curves_, title, metric);
    return repeat_script(repeat_curves_, title, metric);
  }

  nlohmann::ordered_json row_of(const Point& point) const {
    nlohmann::ordered_json row;
    row["directory"] = options_.directory;
    row["split"] = options_.split;
    row["step"] = checkpoint_.step;
    row["length"] = point.length;
    row["rounds"] = point.rounds;
    if (!options_.assignments.empty()) row["set"] = options_.assignments;
    if (options_.our_attention) row["our_attention"] = true;
    return row;
  }

  void evaluate_point(const Task& task, const Point& point) {
    report_.progress("evaluating with " + label_of(point));
    if (options_.by_position) {
      evaluate_positions(task, point);
    } else if (!options_.recall.empty()) {
      evaluate_repeats(task, point);
    } else if (checkpoint_.config.task.name == TaskKind::kRecall) {
      evaluate_distances(task, point);
    } else {
      evaluate_whole(task, point);
    }
  }

  // In batches, with the time that is left.
  EvaluationProgress progress_of(const Point& point) {
    return TimedProgress(report_, "evaluating with " + label_of(point));
  }

  void evaluate_whole(const Task& task, const Point& point) {
    const auto e = evaluate(*model_, task, split_, options_.batches,
                            point.rounds, progress_of(point));
    auto row = reported(task, point, e);
    if (translates(task)) add_bleu(task, point, row);
    report_.json(line_of(row));
  }

  // BLEU is of the whole split.
  bool translates(const Task& task) const {
    return checkpoint_.config.model.encoder_layers > 0 && task.tokenizer() &&
           options_.beam > 0 && options_.batches == 0;
  }

  void add_bleu(const Task& task, const Point& point,
                nlohmann::ordered_json& row) {
    TranslatorConfig config;
    config.beam = options_.beam;
    config.length_penalty = options_.length_penalty;
    config.batch = translation_batch(device_);
    config.rounds = point.rounds;
    const auto found = translate_split(
        static_cast<const EncoderDecoder&>(*model_), task, split_, config,
        TimedProgress(report_, "translating lines"));
    report_.text(found.line() + "\n");
    row["bleu"] = found.bleu.score;
    row["bleu_signature"] = found.signature();
    row["beam"] = options_.beam;
    row["length_penalty"] = options_.length_penalty;
  }

  // The line of text is out, the row of JSON is returned.
  nlohmann::ordered_json reported(const Task& task, const Point& point,
                                  const Evaluation& e) {
    require(std::isfinite(e.loss), options_.directory, ", step ",
            checkpoint_.step,
            ": the loss is not finite: the model has "
            "diverged; evaluate an older checkpoint of the run");
    report_.text(line_of(task, point, e));
    auto row = row_of(point);
    row["loss"] = e.loss;
    row["accuracy"] = e.accuracy;
    row["metric"] = task.metric_name();
    row["value"] = e.metric;
    return row;
  }

  void evaluate_distances(const Task& task, const Point& point) {
    const auto octaves =
        sums_by_distance(language_model_of(*model_), task, split_,
                         options_.batches, point.rounds, progress_of(point));
    LossSums all;
    for (const auto& octave : octaves) all += octave.sums;
    Evaluation e;
    e.loss = all.mean_loss();
    e.accuracy = all.accuracy();
    e.metric = task.metric_of(e.loss, split_);
    auto row = reported(task, point, e);
    for (const auto& [begin, end, sums] : octaves) {
      report_.text("  distances " + std::to_string(begin) + " to " +
                   std::to_string(end - 1) + ": accuracy " +
                   fixed(100 * sums.accuracy(), 2, "%") + " of " +
                   counted(sums.count, "token") + "\n");
      row["distances"].push_back({{"begin", begin},
                                  {"end", end},
                                  {"loss", sums.mean_loss()},
                                  {"accuracy", sums.accuracy()},
                                  {"tokens", sums.count}});
    }
    report_.json(line_of(row));
  }

  void evaluate_positions(const Task& task, const Point& point) {
    auto values =
        losses_by_position(language_model_of(*model_), task, split_,
                           options_.batches, point.rounds, progress_of(point));
    for (double& value : values) value = task.metric_of(value, split_);
    curves_.push_back({label_of(point), position_ranges(values)});
    report_.text(curves_.back().label + "\n");
    for (const auto& [begin, end, value] : curves_.back().ranges) {
      report_.text("  positions " + std::to_string(begin) + " to " +
                   std::to_string(end - 1) + ": " + task.metric_name() + " " +
                   fixed(value, 4) + "\n");
      auto row = row_of(point);
      row["begin"] = begin;
      row["end"] = end;
      row["metric"] = task.metric_name();
      row["value"] = value;
      report_.json(line_of(row));
    }
  }

  void evaluate_repeats(const Task& task, const Point& point) {
    RepeatCurve curve{label_of(point), {}};
    for (const auto& found : losses_on_repeats(
             language_model_of(*model_), task, split_, options_.recall,
             options_.batches, point.rounds, progress_of(point))) {
      const RepeatPoint value{found.distance,
                              task.metric_of(found.repeat, split_),
                              task.metric_of(found.first, split_),
                              task.metric_of(found.no_copy, split_)};
      curve.points.push_back(value);
      auto row = row_of(point);
      row["distance"] = value.distance;
      row["metric"] = task.metric_name();
      row["repeat"] = value.repeat;
      row["first"] = value.first;
      row["no_copy"] = value.no_copy;
      row["tokens"] = found.count;
      report_.json(line_of(row));
    }
    report_.text(curve.label + ": " + task.metric_name() + "\n" +
                 repeat_table(curve.points));
    repeat_curves_.push_back(std::move(curve));
  }

  const EvalOptions& options_;
  at::Device device_;
  Checkpoint checkpoint_;
  std::vector<Sequences> sequences_;  // before the model: data may be missing
  std::vector<int64_t> rounds_;
  std::unique_ptr<SequenceModel> model_;
  Split split_;
  Report report_;
  std::vector<PositionCurve> curves_;
  std::vector<RepeatCurve> repeat_curves_;
};

void run_eval(const EvalOptions& options) {
  require(options.png.empty() || options.by_position || !options.recall.empty(),
          "--png draws the loss against the position or the distance: it needs "
          "--by-position or --recall");
  if (!options.png.empty()) check_plot_path(options.png);
  stop_requested();  // from here on a wish, which progress heeds
  // Beside what it was trained with: what does the change cost?
  auto trained = options;
  trained.our_attention = false;
  if (options.our_attention) Eval(trained).run();
  Eval(options).run();
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand("eval", "Evaluate a trained model");
  const auto options = std::make_shared<EvalOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required()
      ->check(not_empty());
  command.add_option("--data", options->data, "other data: sets task.data")
      ->check(not_empty())
      ->type_name("PATH");
  command.add_option("--split", options->split, "validation or test")
      ->check(one_of({"validation", "test"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--rounds", options->rounds,
                  "hash rounds, free to differ from training's; 0: the same")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 1024))
      ->type_name("N,...");
  command
      .add_option("--batches", options->batches,
                  "batches of the split to take; 0: all")
      ->check(whole_number(0, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option(
          "--length", options->lengths,
          "positions of a sequence, at most the model's; 0: training's; "
          "each with all of --rounds")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, kMaxLength))
      ->type_name("N,...");
  auto* by_position =
      command.add_flag("--by-position", options->by_position,
                       "the loss by position in the sequence: does the model "
                       "use what lies far back?");
  command
      .add_option("--recall", options->recall,
                  "the loss on pieces of text that come a second time, so many "
                  "positions after the first: does it find them?")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(1, kMaxLength))
      ->excludes(by_position)
      ->type_name("N,...");
  command.add_option("--png", options->png, "draw that: a .png or .svg")
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option("--beam", options->beam,
                  "of a translation model: hypotheses that translations are "
                  "searched with, for BLEU, which is of all --batches; 0: none")
      ->check(whole_number(0, kernels::kMaxTopTokens - 1))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--length-penalty", options->length_penalty,
                  "of these: as translate's")
      ->check(number(-100, 100))
      ->type_name("A")
      ->capture_default_str();
  command.add_flag("--our-attention", options->our_attention,
                   "of a model imported from Hugging Face: evaluate a second "
                   "time, with lsh in place of lsh_huggingface");
  add_set_option(command, options->assignments);
  add_machine_options(command, options->device, options->threads);
  command.add_flag("--json", options->json, "one JSON object a line on stdout");
  command.callback(
      [options, &action] { action = [options] { run_eval(*options); }; });
}

}  // namespace reformer::cli
