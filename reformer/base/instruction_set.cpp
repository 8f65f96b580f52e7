#include "reformer/base/instruction_set.h"

#include <atomic>
#include <cstdlib>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

InstructionSet chosen_by_environment() {
  const auto supported = supported_instruction_sets();
  const char* wanted = std::getenv("REFORMER_CPU");
  if (wanted == nullptr || *wanted == '\0') return supported.back();
  std::string names;
  for (const auto set : supported) {
    if (name_of(set) == wanted) return set;
    names += (names.empty() ? "" : ", ") + name_of(set);
  }
  throw Error("REFORMER_CPU: this processor and build can run " + names +
              "; got '" + wanted + "'");
}

std::atomic<InstructionSet>& current() {
  static std::atomic<InstructionSet> set{chosen_by_environment()};
  return set;
}

}  // namespace

std::string name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain:
      return "plain";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<InstructionSet> supported_instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::kPlain};
#ifdef REFORMER_HAVE_X86
  // The levels x86-64-v3 and -v4 that the kernels are compiled for, by the
  // features of theirs that the kernels' code can contain.
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) sets.push_back(InstructionSet::kAvx2);
  if (v4) sets.push_back(InstructionSet::kAvx512);
#endif
  return sets;
}

InstructionSet instruction_set() { return current().load(); }
void set_instruction_set(InstructionSet set) { current().store(set); }

}  // namespace reformer
