// Which rank of how many a process is, as launchers tell it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace reformer {

struct Ranks {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;  // among those of this machine
  int64_t local_size = 1;
  std::string host;  // where the store is; empty: nobody launched this process
  int64_t port = 0;
  // Of torchrun, whose agent serves the store and outlives the ranks. Else
  // rank 0 serves it.
  bool agent_store = false;
  std::string attempt;  // torchrun's count of restarts, which keep the store

  bool launched() const { return !host.empty(); }
  bool first() const { return rank == 0; }
};

// The value of an environment variable; null: not set.
using Environment = std::function<const char*(const char* name)>;

// From RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT (torchrun, and
// whoever sets them by hand), else OMPI_COMM_WORLD_* (mpirun), else SLURM_* of
// a step of several tasks (srun). A start without any of them is one rank that
// was not launched. MASTER_ADDR may be missing where all ranks are on this
// machine, and under srun, whose first machine it is; MASTER_PORT likewise.
// Throws Error for values that are impossible or missing.
Ranks ranks_of(const Environment& environment);

// The same of this process's environment.
Ranks ranks_of_environment();

// "rank 3: " where the environment says that there are several; else empty.
std::string rank_prefix();

// The first of a list as Slurm writes them: "node7" of "node[7-9,12],other".
std::string first_host(const std::string& hosts);

// What rank `rank` of `size` takes of `count` things: shares differ by 1 at
// most, and follow one another in the order of the ranks.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};
Share share_of(int64_t count, int64_t rank, int64_t size);

}  // namespace reformer
