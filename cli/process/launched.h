// A process that a launcher started as one rank of several.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

#include "reformer/config/config.h"
#include "reformer/distributed/world.h"

namespace reformer::cli {

// What the environment says of this process, read once.
const Ranks& launched_ranks();

// For --device and --threads of a rank: "cuda" and "auto" are its own GPU, by
// its number on its machine; threads of 0 are its share of the cores, unless
// somebody has bound it to some.
std::string device_of_rank(const std::string& device);
int threads_of_rank(int64_t threads);

// Meets the ranks that were launched together, which must be of one program and
// have one config, and calls body(world); with null where nobody launched this
// process. When it returns or is interrupted, all ranks have come to the same
// end.
//
// Where one of them fails, hangs or is lost, all processes end: with one
// sentence, of the rank that failed or else of the first that is left; and at
// once, because what waits for other ranks cannot be ended in order. So they
// do, without a sentence and with that rank's status, where `body` throws
// Interrupted or OutputClosed.
void run_as_rank(const Config& config, c10::Device device,
                 const std::function<void(World*)>& body);

}  // namespace reformer::cli
