#include "tests/fuzz/target.h"

#include "reformer/base/errors.h"

namespace reformer::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

void execute(const Target& target, const std::string& input) {
  try {
    target.execute(input);
  } catch (const Error& error) {
    law(error.what()[0] != '\0', "an error says what is wrong");
  }
}

void law(bool holds, const std::string& sentence) {
  if (!holds) throw BrokenLaw("does not hold: " + sentence);
}

}  // namespace reformer::fuzz
