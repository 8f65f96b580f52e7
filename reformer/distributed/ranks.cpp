#include "reformer/distributed/ranks.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kDefaultPort = 29500;  // PyTorch's
constexpr int64_t kLastPort = 65535;
// Of Slurm's steps, two of which may share a machine: by the numbers of job and
// step. Jobs that run at a time have numbers that are near each other, and a
// job's steps follow one another.
constexpr int64_t kFirstStepPort = 20000;
constexpr int64_t kStepPorts = 10000;
constexpr int64_t kBetweenSteps = 101;
constexpr int64_t kMostSlurm = int64_t{1} << 40;  // of its numbers

class Variables {
 public:
  explicit Variables(const Environment& environment)
      : environment_(environment) {}

  std::string text(const std::string& name) const {
    const char* value = environment_(name.c_str());
    return value == nullptr ? "" : value;
  }

  bool has(const std::string& name) const { return !text(name).empty(); }

  int64_t number(const std::string& name, int64_t least, int64_t most) const {
    const std::string value = text(name);
    int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, fault] = std::from_chars(value.data(), end, number);
    require(fault == std::errc() && stop == end && !value.empty() &&
                number >= least && number <= most,
            name, ": a whole number from ", least, " to ", most,
            " is required of the launcher, got '", value, "'");
    return number;
  }

  int64_t number_or(const std::string& name, int64_t least, int64_t most,
                    int64_t otherwise) const {
    return has(name) ? number(name, least, most) : otherwise;
  }

 private:
  const Environment& environment_;
};

// What a launcher calls its variables.
struct Names {
  std::string rank;
  std::string size;
  std::string local_rank;
  std::string local_size;
};

std::optional<Names> names_in(const Variables& variables) {
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) {
    return Names{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  }
  const std::string mpi = "OMPI_COMM_WORLD_";
  if (variables.has(mpi + "SIZE")) {
    return Names{mpi + "RANK", mpi + "SIZE", mpi + "LOCAL_RANK",
                 mpi + "LOCAL_SIZE"};
  }
  // Of a step alone: in a batch script, too, there are SLURM_NTASKS and
  // SLURM_PROCID, and the program that it starts is one. So are those that
  // somebody starts in a step of one task, such as a shell.
  if (variables.number_or("SLURM_STEP_NUM_TASKS", 1, kMostRanks, 1) > 1) {
    return Names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                 "SLURM_STEP_TASKS_PER_NODE"};
  }
  return {};
}

// "4(x2),3": of most machines the first number is their own, and nothing but
// the number of threads depends on it.
int64_t tasks_of_node(const std::string& text) {
  return std::max<int64_t>(1, std::strtoll(text.c_str(), nullptr, 10));
}

std::string host_in(const Variables& variables, const Ranks& ranks) {
  if (variables.has("MASTER_ADDR")) return variables.text("MASTER_ADDR");
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (variables.has(list)) return first_host(variables.text(list));
  }
  require(ranks.local_size >= ranks.size,
          "MASTER_ADDR: the machine of rank 0 is required where ranks are on "
          "several, and is not set; with mpirun: -x MASTER_ADDR=HOST");
  return "127.0.0.1";
}

int64_t port_in(const Variables& variables) {
  const auto number = [&](const char* name, int64_t otherwise) {
    return variables.number_or(name, 0, kMostSlurm, otherwise);
  };
  const int64_t job = number("SLURM_JOB_ID", -1);
  const int64_t step = number("SLURM_STEP_ID", 0);
  const int64_t port =
      kFirstStepPort + (job + kBetweenSteps * step) % kStepPorts;
  return variables.number_or("MASTER_PORT", 1, kLastPort,
                             job < 0 ? kDefaultPort : port);
}

}  // namespace

Ranks ranks_of(const Environment& environment) {
  const Variables variables(environment);
  const auto names = names_in(variables);
  Ranks ranks;
  if (!names) return ranks;
  ranks.size = variables.number(names->size, 1, kMostRanks);
  ranks.rank = variables.number(names->rank, 0, ranks.size - 1);
  ranks.local_rank = variables.number_or(names->local_rank, 0, kMostRanks, 0);
  ranks.local_size = variables.has(names->local_size)
                         ? tasks_of_node(variables.text(names->local_size))
                         : 1;
  ranks.host = host_in(variables, ranks);
  ranks.port = port_in(variables);
  // torchrun also writes False.
  ranks.agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  ranks.attempt = variables.text("TORCHELASTIC_RESTART_COUNT");
  return ranks;
}

Ranks ranks_of_environment() {
  return ranks_of([](const char* name) { return std::getenv(name); });
}

std::string rank_prefix() {
  try {
    const Ranks ranks = ranks_of_environment();
    return ranks.size > 1 ? "rank " + std::to_string(ranks.rank) + ": " : "";
  } catch (const Error&) {  // which is told by whoever needs them
    return "";
  }
}

std::string first_host(const std::string& hosts) {
  const size_t bracket = hosts.find('[');
  const size_t comma = hosts.find(',');
  if (bracket == std::string::npos || comma < bracket) {
    return hosts.substr(0, comma);
  }
  const size_t end = hosts.find_first_of("-,]", bracket);
  return hosts.substr(0, bracket) +
         hosts.substr(bracket + 1, end - bracket - 1);
}

Share share_of(int64_t count, int64_t rank, int64_t size) {
  return {count * rank / size, count * (rank + 1) / size};
}

}  // namespace reformer
