#include "cli/draw/attention_plot.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/attention/head_weights.h"
#include "cli/screen/open_task.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/ops/lsh_attention.h"
#include "reformer/tasks/task.h"
#include "reformer/tasks/task_tokenizer.h"
#include "reformer/train/trainer.h"

namespace reformer::cli {
namespace {

// One head of one layer, on one sequence.
struct HeadAttention {
  at::Tensor q;           // [length, d_head] float32
  IntervalRounds rounds;  // of this head; the local round first, if any
  at::Tensor buckets;     // [length]: of the round to sort by
  int64_t round;          // its number in `rounds`
  int64_t chunk_length;
  bool successors;  // a key offers the value of the position after it

  HeadVectors vectors() const {
    return {q.const_data_ptr<float>(), nullptr, q.size(0), q.size(1),
            successors};
  }
};

void check_plot(const LanguageModel& model, const AttentionPlot& at) {
  const auto& config = model.config();
  const auto within = [](const char* what, int64_t given, int64_t most) {
    require(given <= most, "plot --attention: --", what, " ", given,
            " is not there: the model has ", most);
  };
  within("layer", at.layer, config.model.layers);
  within("head", at.head, config.model.heads);
  within("round", at.round, bucket_rounds(config.lsh));
  const auto kind = config.model.attention.of_layer(at.layer - 1);
  require(kind == AttentionKind::kLsh, "plot --attention: layer ", at.layer,
          " is ", name_of(kind),
          " attention, which sorts nothing: choose an lsh --layer");
  require(at.head <= hashed_heads(config), "plot --attention: head ", at.head,
          " sees its neighbours alone and sorts nothing: choose a --head from "
          "1 to ",
          hashed_heads(config));
}

HeadAttention attention_of(const LanguageModel& model, const at::Tensor& tokens,
                           const AttentionPlot& at) {
  const at::NoGradGuard no_grad;
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), 0, false,
                  0};
  const auto& layer =
      model.stack().blocks()[static_cast<size_t>(at.layer - 1)].attention;
  const auto convolved = layer.convolved(
      layer.project(model.attention_input(tokens, pass, at.layer - 1)));
  at::Tensor buckets;
  layer.hash(convolved, model.pass_over(tokens, pass), buckets);
  const auto q = layer.turned(convolved).q;
  const auto rounds = lsh_rounds(buckets, layer.lsh());
  const int64_t head = at.head - 1;
  const int64_t local_rounds = layer.lsh().local_window > 0 ? 1 : 0;
  return {
      q[0][head].contiguous(),
      {rounds.order[0][head].contiguous(), rounds.place[0][head].contiguous(),
       rounds.interval[0][head].contiguous()},
      buckets[0][head][at.round - 1].to(at::kLong).contiguous(),
      at.round - 1 + local_rounds,
      layer.lsh().chunk_length,
      head < layer.successor_heads()};
}

// Rows of weights, NaN where a query does not attend.
using Matrix = std::vector<std::vector<double>>;

class Weights {
 public:
  explicit Weights(const HeadAttention& attention)
      : attention_(attention),
        length_(attention.q.size(0)),
        n_rounds_(attention.rounds.order.size(0)),
        place_(attention.rounds.place.const_data_ptr<int32_t>()),
        interval_(attention.rounds.interval.const_data_ptr<int32_t>()) {}

  bool attends(int64_t i, int64_t j, int64_t round) const {
    const int32_t* bounds = interval_ + (i * n_rounds_ + round) * 2;
    const int32_t place = place_[j * n_rounds_ + round];
    return i != j && place >= bounds[0] && place < bounds[1];
  }

  // The softmax over the union of all rounds, in natural order: columns are the
  // positions whose values are read.
  Matrix matrix() const {
    Matrix weights(size_t(length_), std::vector<double>(size_t(length_), NAN));
    for (int64_t i = 0; i < length_; ++i) {
      for (const auto& [position, weight] :
           read_values(attention_.vectors(), i, seen_by(i))) {
        double& sum = weights[size_t(i)][size_t(position)];
        sum = std::isnan(sum) ? weight : sum + weight;
      }
    }
    return weights;
  }

 private:
  bool in_any_round(int64_t i, int64_t j) const {
    for (int64_t round = 0; round < n_rounds_; ++round) {
      if (attends(i, j, round)) return true;
    }
    return false;
  }

  std::vector<int64_t> seen_by(int64_t i) const {
    std::vector<int64_t> seen;
    for (int64_t j = 0; j < length_; ++j) {
      if (in_any_round(i, j)) seen.push_back(j);
    }
    return seen;
  }

  const HeadAttention& attention_;
  int64_t length_;
  int64_t n_rounds_;
  const int32_t* place_;
  const int32_t* interval_;
};

// Rows and columns in the round's order, and only the pairs that it found.
Matrix sorted_by_bucket(const Matrix& natural, const HeadAttention& attention) {
  const Weights weights(attention);
  const auto order = attention.rounds.order[attention.round];
  const int32_t* at = order.const_data_ptr<int32_t>();
  Matrix sorted(natural.size(), std::vector<double>(natural.size(), NAN));
  for (size_t a = 0; a < natural.size(); ++a) {
    for (size_t b = 0; b < natural.size(); ++b) {
      if (weights.attends(at[a], at[b], attention.round)) {
        sorted[a][b] =
            natural[size_t(at[a])]
                   [size_t(value_of_key(attention.vectors(), at[b]))];
      }
    }
  }
  return sorted;
}

// What the scale begins with: less is shown as that, and is told from nothing.
constexpr double kLeastShown = 1e-4;

// Six digits are more than a color shows.
double rounded(double weight) {
  return std::isnan(weight)
             ? weight
             : std::max(kLeastShown, std::round(weight * 1e6) / 1e6);
}

Script data_block(Literal name, const Matrix& matrix) {
  Script text;
  text << "$" << name << " << EOD\n";
  for (const auto& row : matrix) {
    for (const double weight : row) text << rounded(weight) << " ";
    text << "\n";
  }
  return text << "EOD\n";
}

// A square around each bucket's places, and lines between chunks.
Script bucket_squares(const HeadAttention& attention) {
  const auto order = attention.rounds.order[attention.round];
  const auto bucket = attention.buckets.index_select(0, order.to(at::kLong));
  const int64_t* of = bucket.const_data_ptr<int64_t>();
  const int64_t length = bucket.size(0);
  const double last = double(length) - 0.5;
  Script text;
  for (int64_t at = attention.chunk_length; at < length;
       at += attention.chunk_length) {
    const double place = double(at) - 0.5;
    text << "set arrow from " << place << ",-0.5 to " << place << "," << last
         << " nohead back lc '#bbbbbb' dt 3\n"
            "set arrow from -0.5,"
         << place << " to " << last << "," << place
         << " nohead back lc '#bbbbbb' dt 3\n";
  }
  for (int64_t begin = 0, end = 0; begin < length; begin = end) {
    while (end < length && of[end] == of[begin]) ++end;
    text << "set object rectangle from " << double(begin) - 0.5 << ","
         << double(begin) - 0.5 << " to " << double(end) - 0.5 << ","
         << double(end) - 0.5 << " front fs empty border lc '#d95f02'\n";
  }
  return text;
}

Script panel(const std::string& title, Literal x, Literal y, Literal data) {
  Script text;
  return text << "set title " << Quoted(title) << " font ',16'\nset xlabel '"
              << x << "'\nset ylabel '" << y << "'\nplot $" << data
              << " matrix with image pixels notitle\n";
}

}  // namespace

Script attention_script(const std::string& directory,
                        const AttentionPlot& plot) {
  auto checkpoint = load_best_model(directory);
  if (!plot.data.empty()) checkpoint.config.task.data = plot.data;
  LanguageModel model(checkpoint.config);
  check_plot(model, plot);
  load_parameters(model, checkpoint.parameters);
  const auto task =
      open_task(checkpoint.config, /*stop=*/nullptr,
                run_tokenizer(checkpoint.config, checkpoint.tokenizer));
  const auto all = task->evaluation_batch(Split::kValidation, 0).tokens;
  const int64_t length = std::min(all.size(1), kPlotPositions);
  const auto attention =
      attention_of(model, all.narrow(0, 0, 1).narrow(1, 0, length), plot);
  const Matrix natural = Weights(attention).matrix();

  const std::string which = "layer " + std::to_string(plot.layer) + ", head " +
                            std::to_string(plot.head);
  Script script;
  script << data_block("natural", natural)
         << data_block("sorted", sorted_by_bucket(natural, attention))
         << "set multiplot layout 1,2\n"
            "set palette defined (0 '#c6dbef', 0.5 '#4292c6', 1 '#08306b')\n"
            "set logscale cb 10\nset cbrange ["
         << kLeastShown
         << ":1]\nset format cb '%g'\n"
            "set cblabel 'attention weight (white: none)' offset -0.7,0\n"
            "set border linecolor rgb '#606060'\nset tics nomirror\n"
            "set size square\nset yrange ["
         << double(length) - 0.5
         << ":-0.5]\nset xrange [-0.5:" << double(length) - 0.5 << "]\n"
         << panel("What " + which + " attends to (all rounds)",
                  attention.successors
                      ? Literal("value, of the position after the key")
                      : Literal("key"),
                  "query", "natural")
         << bucket_squares(attention)
         << panel("Round " + std::to_string(plot.round) +
                      ", sorted by bucket (orange), in chunks of " +
                      std::to_string(attention.chunk_length) + " (dotted)",
                  "key, sorted", "query, sorted", "sorted")
         << "unset multiplot\n";
  return script;
}

}  // namespace reformer::cli
