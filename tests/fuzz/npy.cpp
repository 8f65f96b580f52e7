// data/npy: the header, then the rows.
#include "reformer/data/npy.h"

#include "tests/data/npy_array.h"
#include "tests/fuzz/memory_stream.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  std::string second = npy_array(3, 2, "aabbcc");
  second.replace(6, 4, std::string("\x02\x00\x76\x00\x00\x00", 6));
  return {npy_array(2, 3, "aabbcc"), second, npy_array(1, 12, ""),
          npy_array(3, 2, "", "<f4")};
}

void execute(const std::string& input) {
  MemoryStream stream(input, /*seekable=*/false, /*most=*/61);
  const NpyHeader header = read_npy_header(stream);
  law(header.rows > 0 && header.columns > 0, "an array has rows and columns");
  law(read_all(stream, input.size()).size() <= input.size(),
      "the rows are in the file");
}

const Registered registered({"npy", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
