// io/checkpoint_state: the text as it is, and with the checksum it needs.
#include "reformer/base/errors.h"
#include "reformer/base/xxhash64.h"
#include "reformer/io/checkpoint_state.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr char kKey[] = "\"checksum\"";

std::vector<std::string> seeds() {
  CheckpointState state;
  state.checkpoint.step = 7;
  state.checkpoint.has_best = true;
  state.checkpoint.best_loss = 1.5;
  state.checksums = {{"model.safetensors", "0123456789abcdef"}};
  const std::string finite = render_state(state);
  state.checkpoint.best_loss = NAN;
  return {finite, render_state(state)};
}

void try_text(const std::string& text) {
  CheckpointState state;
  try {
    state = parse_state(text, "state.json");
  } catch (const Error&) {
    return;
  }
  const std::string once = render_state(state);
  law(render_state(parse_state(once, "again")) == once,
      "a state that was read is written and read again as it is");
}

void execute(const std::string& input) {
  try_text(input);
  const std::string before = input.substr(0, input.rfind(kKey));
  try_text(before + kKey + ": \"" + xxhash64_hex(before) + "\"}");
}

const Registered registered({"state", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
