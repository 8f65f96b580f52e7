// data/archive: members of archives of every kind, one after the other.
#include "reformer/data/archive.h"

#include <array>

#include "tests/formats/archive_writer.h"
#include "tests/fuzz/archive_names.h"
#include "tests/fuzz/memory_stream.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // then the rest is left unread

// The first byte chooses the name and whether one can go back in it.
void execute(const std::string& input) {
  if (input.empty()) return;
  const auto choice = static_cast<uint8_t>(input[0]);
  const std::string name = kArchiveNames[choice % kArchiveNames.size()];
  MemoryStream stream(input.substr(1), /*seekable=*/choice < 128);
  size_t total = 0;
  std::array<uint8_t, 4096> part;
  for_each_in_archive(
      name, stream, [&](const std::string&, ByteStream& member) {
        while (total < kMostBytes) {
          const size_t n = member.read(part);
          law(n <= part.size(), "no more is read than there is room for");
          total += n;
          if (n == 0) break;
        }
      });
}

const Registered registered({"archive", archive_seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
