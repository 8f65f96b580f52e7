// A run's folder: its checkpoints, its config, its metrics.
//
//   DIR/config.json            the resolved config
//   DIR/metrics.jsonl          a line each log
//   DIR/events.out.tfevents.*  the same for TensorBoard
//   DIR/tokenizer.model        what the tokens are written with, where that is
//                              a file
//   DIR/step-00001000/         a checkpoint: model.safetensors,
//                              optimizer.safetensors, state.json, and
//                              tokenizer.model again; and an empty file `best`
//                              where it was the best yet. Where ranks share
//                              the optimizer's state, files of each
//                              (io/checkpoint_parts.h)
//   DIR/best                   a link to the best, for people: the newest
//                              checkpoint with the file `best` is the one
//   DIR/run.lock               while a run goes on; after a kill it means
//                              nothing
//   DIR/step-00001000.old/     only after a kill while step 1000 was saved a
//                              second time: the first one
//   DIR/.tmp-NAME-PID          only after a kill: what was being written or
//                              removed, NAME one of these; the next save
//                              removes it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/config/config.h"
#include "reformer/data/data_identity.h"
#include "reformer/io/run_lock.h"
#include "reformer/model/parameter.h"

namespace reformer {

// Everything that a run needs to go on as if it had never stopped.
struct Checkpoint {
  Config config;
  int64_t step = 0;             // steps done; keys hashes and dropout
  int64_t data_position = 0;    // batches drawn
  int64_t evaluated_step = -1;  // the last one evaluated; -1: none yet
  double best_loss = 0;         // lowest validation loss so far
  bool has_best = false;
  double seconds = 0;              // of training so far
  int threads = 1;                 // bits depend on these two
  std::string instruction_set;     // or the GPU's name
  std::vector<DataIdentity> data;  // none in files of older programs
  std::string tokenizer;           // Tokenizer::file(); empty: none
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> optimizer;
};

// Writes DIR/step-N whole or not at all (written beside, synced, renamed), then
// removes all but the last config.train.keep of them and the best. With `best`
// this one is the best from now on; that is part of the same rename. A step
// that was saved before is replaced, and stays the best if it was. Throws Error
// (a full disk), leaving what was there; NotFinite, before anything is written,
// where a parameter or the optimizer's state holds NaN or infinity. The caller
// holds the run's lock: leftovers of killed writes are removed.
void save_checkpoint(const std::string& directory, const Checkpoint& checkpoint,
                     bool best);

class NotFinite : public Error {
 public:
  using Error::Error;
};

// What an evaluation of the checkpoint of step `step`, saved before, found:
// it holds best_loss and has_best from now on and counts as evaluated, and with
// `best` it is the best; that decides anew what is kept. Killed in between, it
// counts as not evaluated.
struct EvaluatedCheckpoint {
  int64_t step;
  double best_loss;
  bool has_best;
  bool best;
};
void record_evaluation(const std::string& directory,
                       const EvaluatedCheckpoint& evaluated);

// What a kill kept the last save or record_evaluation from: leftovers and all
// but the last `keep` are removed, the link is set. The caller holds the lock,
// and has loaded the newest one: where that is damaged the older ones are
// needed.
void finish_saving(const std::string& directory, int64_t keep);

// The newest one that is whole, or nothing when DIR holds none; without the
// optimizer's state, of which load_optimizer_rows (io/checkpoint_rows.h) reads
// as much as somebody keeps. Leftovers of a killed write are ignored. Throws
// Error with the file's name and fault. Where it is damaged, or its numbers are
// not finite, the sentence says which folder to move aside in order to go on
// from an older one; where it could not be read or a newer program wrote it, it
// says no such thing (Unreadable).
std::optional<Checkpoint> load_latest_model(const std::string& directory);

// The same without tensors and tokenizer: nothing but state.json is read.
std::optional<Checkpoint> load_latest_state(const std::string& directory);

// The best where there is one, else the latest; throws Error where there is
// none, or its numbers are not finite. DIR may also be a checkpoint itself:
// RUN/step-00001000, RUN/best.
Checkpoint load_best_checkpoint(const std::string& directory);

// The same without the optimizer's state, for whoever only uses the model: its
// files are not opened, and damage in them is not found.
Checkpoint load_best_model(const std::string& directory);

// Of that one its config alone; nothing but state.json is read.
Config load_best_config(const std::string& directory);

// Writes a trained model for use elsewhere into a new folder, which
// load_best_model reads: parameters of `type`, no optimizer state, in
// files of at most most_bytes (0: one file; of several
// model.safetensors.index.json says which has what), its tokenizer, its config
// without the paths of this machine's data. Throws Error where the folder
// exists, a tensor is larger than a file may be, or one of its numbers is too
// large for `type`.
void export_model(const std::string& directory, const Checkpoint& checkpoint,
                  at::ScalarType type, int64_t most_bytes);

// Whether there is a run to go on with: its settings, or a checkpoint.
bool holds_run(const std::string& directory);

// Makes the run's folder and locks it. Throws Error when somebody holds its
// lock, or it already holds a run or anything else; then nothing in it is
// touched.
RunLock take_run_directory(const std::string& directory);

// config.json, with which the folder holds a run, and, unless it is empty,
// tokenizer.model, where there is no config.json yet.
void write_run_settings(const std::string& directory, const Config& config,
                        const std::string& tokenizer);

// Both.
RunLock create_run_directory(const std::string& directory, const Config& config,
                             const std::string& tokenizer = "");

// Of the run in DIR: its newest checkpoint's, or before the first one
// DIR/tokenizer.model; empty where there is none.
std::string load_run_tokenizer(const std::string& directory);

// The config of the run in DIR: its newest checkpoint's, or before the first
// one config.json's. Throws Error where DIR holds no run.
Config load_run_config(const std::string& directory);

}  // namespace reformer
