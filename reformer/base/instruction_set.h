// Which of the CPU kernels' instruction sets this process runs.
#pragma once

#include <string>
#include <vector>

namespace reformer {

enum class InstructionSet { kPlain, kAvx2, kAvx512 };

// "plain", "avx2", "avx512".
std::string name_of(InstructionSet set);

// Those that were compiled in and that this processor can run, the fastest
// last. kPlain always is among them.
std::vector<InstructionSet> supported_instruction_sets();

// The one in use: the environment variable REFORMER_CPU (read once), else the
// fastest supported one. Throws Error when REFORMER_CPU names none of them.
InstructionSet instruction_set();

// Overrides the choice; for tests and benchmarks, between operations only.
void set_instruction_set(InstructionSet set);

}  // namespace reformer
