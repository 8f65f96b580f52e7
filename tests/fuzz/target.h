// A fuzzer: valid examples, and what is done with them and all their mutants.
//
// `make fuzz` links each file of this folder that registers a target with
// libFuzzer (libfuzzer.cpp); fuzz_tests links all of them with GoogleTest and
// tries the seeds and a few mutants (smoke_test.cpp), so that none rots where
// there is no clang.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace reformer::fuzz {

struct Target {
  const char* name;
  // Small valid inputs, from which libFuzzer starts.
  std::vector<std::string> (*seeds)();
  // Error is an answer: the input was refused. Whatever else it throws is a
  // finding, as is what the sanitizers see.
  void (*execute)(const std::string& input);
};

// All that are linked.
std::vector<Target>& targets();

struct Registered {
  explicit Registered(const Target& target) { targets().push_back(target); }
};

// Runs it; an Error is accepted where it says something.
void execute(const Target& target, const std::string& input);

class BrokenLaw : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws BrokenLaw with the sentence that is not true.
void law(bool holds, const std::string& sentence);

}  // namespace reformer::fuzz
