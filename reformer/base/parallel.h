// The one way in which this library uses several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace reformer {

// Calls body(task) once for every task in [0, tasks), each on some thread, in
// any order, and returns when all have ended. The first exception that a task
// throws is thrown again here. Runs in line when called from inside a task.
//
// Results must not depend on which thread runs a task nor in which order: that
// is what makes every operation the same, bit for bit, for any thread count.
void parallel_tasks(int64_t tasks, const std::function<void(int64_t)>& body);

// The same, all on this thread unless it is `worthwhile` to wake the others:
// that takes microseconds, and milliseconds where they have to wait for a core.
void parallel_tasks_if(bool worthwhile, int64_t tasks,
                       const std::function<void(int64_t)>& body);

// How many threads parallel_tasks uses. LibTorch runs on the same OpenMP
// runtime, and sets its own default there at its first parallel work unless
// at::set_num_threads was called before: call both.
int threads();
void set_threads(int count);

// Ends the threads that parallel work on this thread has started; its next one
// starts others. For a thread that leaves all further work to another one:
// while there are more threads than cores, those of both no longer wait for
// work but sleep, and waking them takes a tenth of a token's time.
void release_threads();

}  // namespace reformer
