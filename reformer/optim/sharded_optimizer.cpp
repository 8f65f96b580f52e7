#include "reformer/optim/sharded_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

// Whether its numbers are updated each by itself.
bool can_be_cut(OptimizerKind optimizer, const Parameter& parameter) {
  if (optimizer == OptimizerKind::kAdafactor || parameter.value.dim() == 0) {
    return false;
  }
  return optimizer != OptimizerKind::kMuon || block_of(parameter.name) < 0 ||
         parameter.value.dim() != 2;
}

// The names and sizes of a state cost nothing there.
std::vector<NamedTensor> state_like(const TrainConfig& config,
                                    const std::vector<Parameter>& parameters) {
  std::vector<Parameter> nowhere;
  for (const auto& [name, value] : parameters) {
    nowhere.emplace_back(
        name, at::empty(value.sizes(), value.options().device(at::kMeta)));
  }
  return make_optimizer(config, nowhere)->state();
}

// "blocks.0.attention.qk.weight" of "blocks.0.attention.qk.weight.momentum".
std::string parameter_of(const std::string& state) {
  return state.substr(0, state.rfind('.'));
}

// Shares of all that is dealt out.
struct Load {
  double work = 0;   // numbers to update, and to send
  double state = 0;  // numbers to keep
  Load operator+(const Load& more) const {
    return {work + more.work, state + more.state};
  }
  double most() const { return std::max(work, state); }
};

// Both count: Adafactor's state of a matrix is a row and a column, so that who
// has few large matrices would keep little, and who has many small ones much.
class Sizes {
 public:
  Sizes(const std::vector<Parameter>& parameters,
        const std::vector<NamedTensor>& state) {
    std::unordered_map<std::string, double> kept;
    for (const auto& [name, value] : state) {
      kept[parameter_of(name)] += double(value.numel());
    }
    for (const auto& [name, value] : parameters) {
      loads_.push_back({double(value.numel()), kept[name]});
      all_ = all_ + loads_.back();
    }
  }

  Load of(size_t parameter) const {
    const auto& [work, state] = loads_[parameter];
    return {work / std::max(all_.work, 1.0), state / std::max(all_.state, 1.0)};
  }

 private:
  std::vector<Load> loads_;
  Load all_;
};

// To whom how much of `more` goes, so that the fullest of `loads` is as little
// as it can be: up to one level, and nothing to those who have more.
std::vector<double> poured(const std::vector<double>& loads, double more) {
  std::vector<double> sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  double level = 0;
  double sum = more;
  for (size_t n = 1; n <= sorted.size(); ++n) {
    sum += sorted[n - 1];
    level = sum / double(n);
    if (n < sorted.size() && level <= sorted[n]) break;
  }
  std::vector<double> parts;
  for (const double load : loads) parts.push_back(std::max(level - load, 0.0));
  return parts;
}

// Rows in the proportion of `parts`, one rank's after another's.
std::vector<RowRange> rows_in_parts(int64_t rows,
                                    const std::vector<double>& parts) {
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  TORCH_INTERNAL_ASSERT(all > 0);
  std::vector<RowRange> ranges;
  double sum = 0;
  int64_t begin = 0;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    sum += parts[rank];
    const bool last = rank + 1 == parts.size();
    const int64_t end = last ? rows : std::llround(double(rows) * (sum / all));
    ranges.push_back({begin, end - begin});
    begin = end;
  }
  return ranges;
}

}  // namespace

std::vector<std::vector<ShardedOptimizer::Piece>> ShardedOptimizer::dealt(
    const TrainConfig& config, const std::vector<Parameter>& parameters,
    const std::vector<NamedTensor>& state, int64_t ranks) {
  std::vector<size_t> cut;
  std::vector<size_t> uncut;
  for (size_t i = 0; i < parameters.size(); ++i) {
    (can_be_cut(config.optimizer, parameters[i]) ? cut : uncut).push_back(i);
  }
  const Sizes sizes(parameters, state);
  std::stable_sort(uncut.begin(), uncut.end(), [&](size_t a, size_t b) {
    return sizes.of(a).work > sizes.of(b).work;
  });
  std::vector<Load> loads(static_cast<size_t>(ranks));
  std::vector<std::vector<Piece>> pieces(loads.size());
  const auto all_rows = [&](size_t parameter) {
    return row_count(parameters[parameter].value.sizes());
  };
  for (const size_t i : uncut) {
    const Load more = sizes.of(i);
    const auto least = std::min_element(
        loads.begin(), loads.end(), [&](const Load& a, const Load& b) {
          return (a + more).most() < (b + more).most();
        });
    *least = *least + more;
    pieces[size_t(least - loads.begin())].push_back(
        {i, {0, all_rows(i)}, true});
  }
  // What can be cut fills up what whole ones have left uneven.
  std::vector<double> kept;
  for (const Load& load : loads) kept.push_back(load.state);
  double more = 0;
  for (const size_t i : cut) more += sizes.of(i).state;
  const auto parts = poured(kept, more);
  for (const size_t i : cut) {
    const auto ranges = rows_in_parts(all_rows(i), parts);
    for (size_t rank = 0; rank < ranges.size(); ++rank) {
      if (ranges[rank].count == 0) continue;
      pieces[rank].push_back(
          {i, ranges[rank], ranges[rank].count == all_rows(i)});
    }
  }
  for (auto& own : pieces) {
    std::sort(own.begin(), own.end(), [](const Piece& a, const Piece& b) {
      return a.parameter < b.parameter;
    });
  }
  return pieces;
}

std::vector<Parameter> ShardedOptimizer::own_parts(
    const std::vector<Parameter>& all) const {
  std::vector<Parameter> parts;
  for (const auto& piece : pieces_[size_t(ranks_.rank())]) {
    const auto& [name, value] = all[piece.parameter];
    const auto& gradient = all[piece.parameter].gradient();
    parts.emplace_back(name, rows_in(value.detach(), piece.rows),
                       gradient.defined()
                           ? rows_in(gradient.contiguous(), piece.rows)
                           : at::Tensor());
  }
  return parts;
}

ShardedOptimizer::ShardedOptimizer(const TrainConfig& config,
                                   const std::vector<Parameter>& parameters,
                                   Communicator& ranks)
    : ranks_(ranks) {
  const auto whole = state_like(config, parameters);
  pieces_ = dealt(config, parameters, whole, ranks.size());
  own_ = make_optimizer(config, own_parts(parameters));
  for (const auto& [name, value] : whole)
    kept_[name].sizes = value.sizes().vec();
  std::unordered_map<std::string, Piece> piece_of;
  for (const auto& piece : pieces_[size_t(ranks_.rank())]) {
    piece_of[parameters[piece.parameter].name] = piece;
  }
  for (const auto& [name, value] : own_->state()) {
    const auto piece = piece_of.find(parameter_of(name));
    if (piece == piece_of.end()) common_.insert(name);
    const bool cut = piece != piece_of.end() && !piece->second.whole;
    auto& [sizes, rows] = kept_.at(name);
    rows = cut ? piece->second.rows : RowRange{0, row_count(sizes)};
  }
}

void ShardedOptimizer::update(std::vector<Parameter>& parameters,
                              double learning_rate) {
  const at::NoGradGuard no_grad;
  auto own = own_parts(parameters);
  own_->update(own, learning_rate);
  std::vector<std::vector<at::Tensor>> updated(pieces_.size());
  for (size_t rank = 0; rank < pieces_.size(); ++rank) {
    for (const auto& piece : pieces_[rank]) {
      const auto& parameter = parameters[piece.parameter];
      if (!parameter.gradient().defined()) continue;
      updated[rank].push_back(rows_in(parameter.value.detach(), piece.rows));
    }
  }
  ranks_.share(std::move(updated)).wait();
}

std::vector<NamedTensor> ShardedOptimizer::state() const {
  auto own = own_->state();
  if (ranks_.rank() == 0) return own;
  std::erase_if(own, [&](const NamedTensor& tensor) {
    return common_.count(tensor.name) > 0;
  });
  return own;
}

RowRange ShardedOptimizer::kept_rows(const std::string& name,
                                     at::IntArrayRef sizes) const {
  const auto kept = kept_.find(name);
  require(kept != kept_.end(), "optimizer state: ", name,
          " is of other parameters or of another optimizer");
  require(sizes == kept->second.sizes, "optimizer state: ", name, " must be ",
          at::IntArrayRef(kept->second.sizes), ", got ", sizes);
  return kept->second.rows;
}

}  // namespace reformer
