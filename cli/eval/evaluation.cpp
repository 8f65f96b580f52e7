#include "cli/eval/evaluation.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/draw/gnuplot.h"
#include "cli/draw/position_losses.h"
#include "cli/draw/repeat_losses.h"
#include "cli/eval/eval_facts.h"
#include "cli/eval/evaluated_run.h"
#include "cli/screen/output.h"
#include "cli/screen/progress.h"
#include "cli/screen/table.h"
#include "cli/translate/translate_split.h"
#include "cli/translate/translation_options.h"
#include "reformer/base/errors.h"
#include "reformer/model/encoder_decoder.h"
#include "reformer/train/repeats.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

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

Placement placement_of(const Config& config, at::Device device, World* world) {
  auto placement = placement_of_trained(device, config.train.precision);
  placement.sequence = world == nullptr ? nullptr : world->sequence();
  return placement;
}

// Evaluates one length and number of rounds after the other.
class Eval {
 public:
  Eval(const EvalOptions& options, at::Device device, World* world)
      : options_(options),
        device_(device),
        world_(world),
        opening_(std::in_place, world),
        run_(options),
        model_(make_model(run_.checkpoint.config,
                          placement_of(run_.checkpoint.config, device, world))),
        split_(options.split == "test" ? Split::kTest : Split::kValidation),
        report_(options.json) {
    load_parameters(*model_, run_.checkpoint.parameters);
    const auto facts = eval_facts(options, run_, device);
    opening_.reset();
    if (world != nullptr) world->require_alike(facts);
  }

  void run() {
    report_.text(options_.directory + ", step " +
                 std::to_string(run_.checkpoint.step) + ", " + options_.split +
                 " split" + (options_.our_attention ? ", our attention" : "") +
                 (ranks() > 1 ? ", " + counted(ranks(), "rank") : "") + "\n");
    for (const auto& [length, task] : run_.sequences) {
      for (const int64_t rounds : run_.rounds) {
        evaluate_point(*task, {length, rounds});
      }
    }
    if (options_.png.empty() || is_silent()) return;
    const World::Busy drawing(world_);
    draw_plot(script(), options_.png);
    report_.note("the plot is " + options_.png);
  }

 private:
  Script script() const {
    const auto title = options_.directory + ", " + options_.split + " split";
    const auto metric = run_.sequences[0].task->metric_name();
    if (options_.by_position) return position_script(curves_, title, metric);
    return repeat_script(repeat_curves_, title, metric);
  }

  nlohmann::ordered_json row_of(const Point& point) const {
    nlohmann::ordered_json row;
    row["directory"] = options_.directory;
    row["split"] = options_.split;
    row["step"] = run_.checkpoint.step;
    row["length"] = point.length;
    row["rounds"] = point.rounds;
    if (!options_.assignments.empty()) row["set"] = options_.assignments;
    if (options_.our_attention) row["our_attention"] = true;
    if (ranks() > 1) row["ranks"] = ranks();
    return row;
  }

  int64_t ranks() const { return world_ == nullptr ? 1 : world_->ranks().size; }

  void evaluate_point(const Task& task, const Point& point) {
    report_.progress("evaluating with " + label_of(point));
    if (options_.by_position) {
      evaluate_positions(task, point);
    } else if (!options_.recall.empty()) {
      evaluate_repeats(task, point);
    } else if (run_.checkpoint.config.task.name == TaskKind::kRecall) {
      evaluate_distances(task, point);
    } else {
      evaluate_whole(task, point);
    }
  }

  // With progress in batches, and the time that is left.
  EvaluatedSplit split_of(const Point& point) {
    return {split_, options_.batches, point.rounds, progress_of(point), world_};
  }

  // Of several ranks none runs ahead by more than a batch: who waited at the
  // end for all that another is slower would take it to hang.
  EvaluationProgress progress_of(const Point& point) {
    TimedProgress timed(report_, "evaluating with " + label_of(point));
    if (world_ == nullptr) return timed;
    return [this, timed](int64_t done, int64_t all) mutable {
      timed(done, all);
      world_->control().barrier();
    };
  }

  void evaluate_whole(const Task& task, const Point& point) {
    const auto e = evaluate(*model_, task, split_of(point));
    auto row = reported(task, point, e);
    if (translates(task)) add_bleu(task, point, row);
    report_.json(line_of(row));
  }

  // BLEU is of the whole split.
  bool translates(const Task& task) const {
    return run_.checkpoint.config.model.encoder_layers > 0 &&
           task.tokenizer() && options_.beam > 0 && options_.batches == 0;
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
        TimedProgress(report_, "translating lines"), world_);
    report_.text(found.line() + "\n");
    row["bleu"] = found.bleu.score;
    row["bleu_signature"] = found.signature();
    row["beam"] = options_.beam;
    row["length_penalty"] = options_.length_penalty;
  }

  // The line of text is out, the row of JSON is returned.
  nlohmann::ordered_json reported(const Task& task, const Point& point,
                                  const Evaluation& e) {
    require_of_all(std::isfinite(e.loss), options_.directory, ", step ",
                   run_.checkpoint.step,
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
        sums_by_distance(language_model_of(*model_), task, split_of(point));
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
        losses_by_position(language_model_of(*model_), task, split_of(point));
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
    for (const auto& found :
         losses_on_repeats(language_model_of(*model_), task, split_of(point),
                           options_.recall)) {
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
  World* world_;                        // null: this process is alone
  std::optional<World::Busy> opening_;  // others wait while data are opened
  EvaluatedRun run_;                    // before the model: data may be missing
  std::unique_ptr<SequenceModel> model_;
  Split split_;
  Report report_;
  std::vector<PositionCurve> curves_;
  std::vector<RepeatCurve> repeat_curves_;
};

}  // namespace

void evaluate_run(const EvalOptions& options, at::Device device, World* world) {
  Eval(options, device, world).run();
}

}  // namespace reformer::cli
