// An optimizer of several ranks, each with a part of its state (ZeRO-1,
// arXiv 1910.02054).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reformer/distributed/communicator.h"
#include "reformer/optim/optimizer.h"

namespace reformer {

// Each rank updates its part of the parameters, whose state it alone keeps, and
// gets the others' parts from their ranks. Gradients are given whole, and the
// same on all ranks. Where an update needs all of a parameter (Adafactor,
// Muon's matrices) whole ones are dealt out, the largest first, each to the
// rank with least to update and to keep; where it treats numbers one by one
// (Adam, and Muon's Adam) a rank's part is some of the rows, the more of them
// the less it has of whole ones. All ranks call all functions alike.
class ShardedOptimizer : public Optimizer {
 public:
  ShardedOptimizer(const TrainConfig& config,
                   const std::vector<Parameter>& parameters,
                   Communicator& ranks);

  void begin_step() override { own_->begin_step(); }
  void update(std::vector<Parameter>& parameters,
              double learning_rate) override;

  // This rank's part, not waiting for others. The parts of all ranks, in their
  // order, are the whole: rows of tensors of one name follow one
  // another; what all ranks have is in the first one's part.
  std::vector<NamedTensor> state() const override;
  bool shared() const override { return true; }

  void load_state(const std::vector<NamedTensor>& kept) override {
    own_->load_state(kept);
  }
  RowRange kept_rows(const std::string& name,
                     at::IntArrayRef sizes) const override;

 private:
  // Rows of a parameter.
  struct Piece {
    size_t parameter = 0;
    RowRange rows;
    bool whole = false;
  };

  static std::vector<std::vector<Piece>> dealt(
      const TrainConfig& config, const std::vector<Parameter>& parameters,
      const std::vector<NamedTensor>& state, int64_t ranks);
  std::vector<Parameter> own_parts(const std::vector<Parameter>& all) const;

  Communicator& ranks_;
  std::vector<std::vector<Piece>> pieces_;  // of each rank
  std::unique_ptr<Optimizer> own_;          // of this rank's pieces
  struct Kept {
    std::vector<int64_t> sizes;  // of the whole
    RowRange rows;               // of these
  };
  std::unordered_map<std::string, Kept> kept_;  // by the state's names
  std::unordered_set<std::string> common_;      // what all ranks have
};

}  // namespace reformer
