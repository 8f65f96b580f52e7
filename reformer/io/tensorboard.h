// Records of a TensorBoard event file: bytes to append, one after the other.
//
// A record is TFRecord's frame (length, its masked CRC-32C, the message, its
// masked CRC-32C) around a message Event of tensorflow/core/util/event.proto.
#pragma once

#include <cstdint>
#include <string>

#include "reformer/io/metrics.h"

namespace reformer {

// The first record of every file.
std::string tensorboard_version_record(double wall_time);

// Events of `step` and later, in this file and in earlier ones, are void: the
// run was taken up from a checkpoint before them.
std::string tensorboard_restart_record(double wall_time, int64_t step);

// TensorBoard keeps float32 alone.
std::string tensorboard_scalars_record(double wall_time, int64_t step,
                                       const Scalars& scalars);

// Text, as TensorBoard shows it: Markdown. Bytes that are no UTF-8 must have
// been replaced.
std::string tensorboard_text_record(double wall_time, int64_t step,
                                    const std::string& name,
                                    const std::string& text);

}  // namespace reformer
