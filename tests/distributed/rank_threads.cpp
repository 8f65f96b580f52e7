#include "tests/distributed/rank_threads.h"

#include <ATen/Parallel.h>

#include <csignal>
#include <exception>
#include <thread>
#include <vector>

#include "reformer/base/parallel.h"

namespace reformer {

void with_ranks(int64_t size, const Config& config,
                const std::function<void(World&)>& body, at::Device device) {
  // As programs do: Gloo writes to connections that others have closed.
  std::signal(SIGPIPE, SIG_IGN);
  const auto store = RankStore::within_process();
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      at::init_num_threads();
      set_threads(1);
      Ranks ranks;
      ranks.rank = rank;
      ranks.size = size;
      ranks.host = "localhost";
      try {
        World world(ranks, store, config.distributed.timeout);
        world.connect(config, device);
        body(world);
        world.shut_down();
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace reformer
