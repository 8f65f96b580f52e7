#include "reformer/core/parallel.h"

#include <omp.h>

#include <exception>
#include <mutex>

#include "reformer/core/errors.h"

namespace reformer {

void parallel_tasks(int64_t tasks, const std::function<void(int64_t)>& body) {
  if (tasks <= 1 || omp_in_parallel() || omp_get_max_threads() == 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  std::exception_ptr failure;
  std::mutex failure_mutex;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t task = 0; task < tasks; ++task) {
    try {
      body(task);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  }
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

}  // namespace reformer
