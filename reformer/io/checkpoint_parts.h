// A checkpoint that several ranks write at the same time, each files of its
// own, and that still appears whole or not at all:
//
//   DIR/step-00001000/model-00002-of-00004.safetensors
//       some of the parameters; model.safetensors.index.json says which
//   DIR/step-00001000/optimizer-00002-of-00004.safetensors
//       that rank's part of the optimizer's state: rows of tensors of one name
//       follow one another from file to file
//
// The first rank makes the folder, all write their parts into it, and when the
// last one is on disk the first publishes it by a rename. Loading is that of
// any checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reformer/io/checkpoint.h"
#include "reformer/io/checkpoint_files.h"
#include "reformer/io/unfinished_folder.h"

namespace reformer {

// Of `count` parts, 0 <= index < count.
struct CheckpointPart {
  size_t index = 0;
  size_t count = 1;
};

// Of all parameters of `checkpoint` and its part of the optimizer's state those
// that this part writes into `folder`. They are on disk when it returns. Throws
// Error; NotFinite before anything is written.
Checksums write_part(const std::string& folder, const Checkpoint& checkpoint,
                     const CheckpointPart& part);

// The first rank's; it holds the run's lock. Destroyed before it is published,
// it leaves no trace.
class CheckpointOfParts {
 public:
  // Makes the folder, beside where DIR/step-N will be.
  CheckpointOfParts(const std::string& directory, int64_t step);

  std::string folder() const { return folder_.path().string(); }

  // What save_checkpoint does once the tensors are written: `checksums` are
  // those of all parts, `count` many. The parameters of `checkpoint` alone say
  // which file has which.
  void publish(const Checkpoint& checkpoint, const Checksums& checksums,
               size_t count, bool best);

 private:
  std::string directory_;
  UnfinishedFolder folder_;
};

}  // namespace reformer
