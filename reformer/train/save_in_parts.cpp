#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/io/checkpoint_parts.h"
#include "reformer/train/save_run.h"

namespace reformer {
namespace {

// How a rank's word begins.
constexpr char kDone = 'd';
constexpr char kNotFinite = 'n';
constexpr char kFailed = 'f';

std::string word_of(const std::function<std::string()>& work) {
  try {
    return kDone + work();
  } catch (const NotFinite& error) {
    return kNotFinite + std::string(error.what());
  } catch (const Error& error) {
    return kFailed + std::string(error.what());
  }
}

// What `work` returned on each rank. Where it threw on one all throw.
std::vector<std::string> of_all_ranks(
    World& world, const std::function<std::string()>& work) {
  auto words = world.control().gathered(word_of(work));
  for (size_t rank = 0; rank < words.size(); ++rank) {
    const char kind = words[rank].front();
    words[rank].erase(0, 1);
    if (kind == kNotFinite) throw NotFinite(words[rank]);
    if (kind == kFailed) {
      throw CommonError("rank " + std::to_string(rank) + ": " + words[rank]);
    }
  }
  return words;
}

// A line for each file; their names have no spaces.
std::string packed(const Checksums& checksums) {
  std::string text;
  for (const auto& [name, checksum] : checksums) {
    text += name + ' ' + checksum + '\n';
  }
  return text;
}

Checksums unpacked(const std::vector<std::string>& texts) {
  Checksums checksums;
  for (const auto& text : texts) {
    std::istringstream lines(text);
    std::string name, checksum;
    while (lines >> name >> checksum) checksums[name] = checksum;
  }
  return checksums;
}

}  // namespace

void save_in_parts(const std::string& directory, const Checkpoint& own,
                   bool best, World& world) {
  const CheckpointPart part{static_cast<size_t>(world.ranks().rank),
                            static_cast<size_t>(world.ranks().size)};
  std::optional<CheckpointOfParts> whole;
  const auto folder = of_all_ranks(world, [&] {
    if (!world.first()) return std::string();
    return whole.emplace(directory, own.step).folder();
  })[0];
  const auto checksums = unpacked(of_all_ranks(
      world, [&] { return packed(write_part(folder, own, part)); }));
  of_all_ranks(world, [&] {
    if (whole) whole->publish(own, checksums, part.count, best);
    return std::string();
  });
}

}  // namespace reformer
