#include "reformer/base/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/interruption.h"

namespace reformer {
namespace {

#ifdef __SANITIZE_THREAD__

// ThreadSanitizer does not see the barriers of OpenMP's runtime, and would
// report every result that one thread leaves to another. It sees those of the
// standard library: whatever tasks do to each other is found.
thread_local bool in_parallel = false;

bool is_in_parallel() { return in_parallel; }

void run_in_parallel(int64_t tasks, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < omp_get_max_threads(); ++worker) {
    workers.emplace_back([&] {
      in_parallel = true;
      for (int64_t task = next++; task < tasks; task = next++) body(task);
    });
  }
}

#else

bool is_in_parallel() { return omp_in_parallel() != 0; }

void run_in_parallel(int64_t tasks, const std::function<void(int64_t)>& body) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t task = 0; task < tasks; ++task) body(task);
}

#endif

}  // namespace

void parallel_tasks(int64_t tasks, const std::function<void(int64_t)>& body) {
  const auto* stop = interruption_flag();  // the caller's, for all threads
  if (tasks <= 1 || is_in_parallel() || omp_get_max_threads() == 1) {
    for (int64_t task = 0; task < tasks; ++task) {
      check_interruption(stop);
      body(task);
    }
    return;
  }
  std::exception_ptr failure;
  std::mutex failure_mutex;
  run_in_parallel(tasks, [&](int64_t task) {
    try {
      check_interruption(stop);
      body(task);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void parallel_tasks_if(bool worthwhile, int64_t tasks,
                       const std::function<void(int64_t)>& body) {
  if (worthwhile) return parallel_tasks(tasks, body);
  for (int64_t task = 0; task < tasks; ++task) body(task);
}

int threads() { return omp_get_max_threads(); }

void set_threads(int count) {
  require(count >= 1, "threads: at least 1 is required, got ", count);
  omp_set_num_threads(count);
}

void release_threads() { omp_pause_resource_all(omp_pause_soft); }

}  // namespace reformer
