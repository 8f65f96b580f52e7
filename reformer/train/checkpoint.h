// A run's folder: its checkpoints, its config, its metrics.
//
//   DIR/config.json            the resolved config
//   DIR/metrics.jsonl          a line each log
//   DIR/events.out.tfevents.*  the same for TensorBoard
//   DIR/step-00001000/         a checkpoint: model.safetensors,
//                              optimizer.safetensors, state.json; and an
//                              empty file `best` where it was the best yet
//   DIR/best                   a link to the best, for people: the newest
//                              checkpoint with the file `best` is the one
//   DIR/step-00001000.old/     only after a kill while step 1000 was saved a
//                              second time: the first one
//   DIR/.tmp-*                 only after a kill: what was being written or
//                              removed; the next save removes it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reformer/core/config.h"
#include "reformer/model/parameter.h"

namespace reformer {

// Everything that a run needs to go on as if it had never stopped.
struct Checkpoint {
  Config config;
  int64_t step = 0;           // steps done; keys hashes and dropout
  int64_t data_position = 0;  // batches drawn
  double best_loss = 0;       // lowest validation loss so far
  bool has_best = false;
  double seconds = 0;           // of training so far
  int threads = 1;              // bits depend on these two
  std::string instruction_set;  // or the GPU's name
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer;
};

// Writes DIR/step-N whole or not at all (written beside, synced, renamed), then
// removes all but the last config.train.keep of them and the best. With `best`
// this one is the best from now on; that is part of the same rename. A step
// that was saved before is replaced, and stays the best if it was. Throws Error
// (a full disk), leaving what was there.
void save_checkpoint(const std::string& directory, const Checkpoint& checkpoint,
                     bool best);

// The newest one that is whole, or nothing when DIR holds none. Leftovers of a
// killed write are ignored. A corrupt file throws Error with its name and
// fault, and names the folder to remove in order to go on from an older one.
std::optional<Checkpoint> load_latest_checkpoint(const std::string& directory);

// The best where there is one, else the latest; throws Error where there is
// none. DIR may also be a checkpoint itself: RUN/step-00001000, RUN/best.
Checkpoint load_best_checkpoint(const std::string& directory);

// Writes a trained model for use elsewhere into a new folder, which
// load_best_checkpoint reads: parameters of `type`, no optimizer state, in
// files of at most most_bytes (0: one file). Throws Error where the folder
// exists or a tensor is larger than a file may be.
void export_model(const std::string& directory, const Checkpoint& checkpoint,
                  at::ScalarType type, int64_t most_bytes);

// Makes the run's folder, with its config.json; throws Error when it already
// holds a run or anything else.
void create_run_directory(const std::string& directory, const Config& config);

// The config of the run in DIR: its newest checkpoint's, or before the first
// one config.json's. Throws Error where DIR holds no run.
Config load_run_config(const std::string& directory);

}  // namespace reformer
