#include "cli/process/launched.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Flags.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "cli/process/build_id.h"
#include "cli/process/failure.h"
#include "cli/process/machine.h"
#include "reformer/device/device.h"
#include "reformer/version.h"

C10_DECLARE_int(caffe2_log_level);

namespace reformer::cli {
namespace {

constexpr int kFatal = 3;  // of LibTorch's levels

// c10d would tell of every fault in words of its own, on every rank.
void silence_libtorch() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) {
    FLAGS_caffe2_log_level = kFatal;
  }
}

}  // namespace

const Ranks& launched_ranks() {
  static const Ranks ranks = ranks_of_environment();
  return ranks;
}

std::string device_of_rank(const std::string& device) {
  const bool any = device == "cuda" || device == "auto";
  if (!launched_ranks().launched() || !any || !cuda_is_available()) {
    return device;
  }
  // Where each rank is shown its own GPU alone, that is the only one.
  const int count =
      c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
  return "cuda:" + std::to_string(launched_ranks().local_rank % count);
}

int threads_of_rank(int64_t threads) {
  if (threads > 0) return static_cast<int>(threads);
  const int available = available_threads();
  const bool bound = available < sysconf(_SC_NPROCESSORS_ONLN);
  if (bound) return available;
  return std::max(1, available / static_cast<int>(launched_ranks().local_size));
}

namespace {

// Of a fault that its rank could not tell itself one of the others does.
bool speaks_of(const RankFault& fault) {
  const int64_t speaker = fault.rank == 0 ? 1 : 0;
  return !fault.told && launched_ranks().rank == speaker;
}

// Once, whichever thread comes first: the watch's or this rank's own.
[[noreturn]] void end(RankWatch& watch, const Failure& failure) {
  static std::atomic<bool> ending = false;
  while (ending.exchange(true)) pause();
  if (!failure.message.empty()) fail(failure.status, failure.message);
  watch.let_others_hear();
  std::fflush(nullptr);
  _exit(failure.status);
}

[[noreturn]] void end(RankWatch& watch, const RankFault& fault) {
  end(watch, Failure{fault.status, speaks_of(fault) ? fault.sentence : ""});
}

[[noreturn]] void end_all(World& world) {
  auto& watch = *world.watching();
  Failure failure = failure_of_current_exception();
  bool others_tell = false;
  try {
    throw;
  } catch (const CommonError&) {
    others_tell = !world.first();
  } catch (const LostContact&) {
    others_tell = true;
  } catch (...) {
  }
  if (others_tell) end(watch, watch.lost_contact(failure.message));
  const auto fault = watch.give_up(failure.message, failure.status);
  if (fault.rank != world.ranks().rank) failure.message.clear();
  end(watch, failure);
}

}  // namespace

void run_as_rank(const Config& config, c10::Device device,
                 const std::function<void(World*)>& body) {
  const Ranks& ranks = launched_ranks();
  if (!ranks.launched()) return body(nullptr);
  silence_libtorch();
  const RankStore store(ranks, config.distributed.timeout);
  World world(ranks, store, config.distributed.timeout);
  world.watch(
      [](RankWatch& watch, const RankFault& fault) { end(watch, fault); });
  try {
    world.require_alike(
        {{"version", version()}, {"the program (its build id)", build_id()}});
    world.connect(config, device);
    body(&world);
    world.shut_down();
  } catch (...) {
    end_all(world);
  }
}

}  // namespace reformer::cli
