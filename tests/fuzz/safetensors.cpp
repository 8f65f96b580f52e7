// io/safetensors: whatever is read can be written and read again.
#include "reformer/io/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"
#include "tests/io/file_support.h"

namespace reformer::fuzz {
namespace {

// A file without a checksum: its mutants come further.
std::string plain(std::string header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

std::string written(const std::vector<NamedTensor>& tensors,
                    const Metadata& metadata) {
  const std::string path = scratch_folder("safetensors") + "/seed";
  write_safetensors(path, tensors, metadata);
  return bytes_of(path);
}

std::vector<std::string> seeds() {
  const auto numbers = at::arange(6, at::kFloat);
  return {
      written({{"a", numbers.view({2, 3})},
               {"b.c", at::arange(3, at::kByte)},
               {"e", at::empty({0, 2})}},
              {{"key", "value"}}),
      written({}, {}),
      plain(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]}})",
            std::string("abcd\1", 5)),
      plain(R"({"__metadata__":{"x":"y"},"c":{"dtype":"BF16","shape":[1,2],)"
            R"("data_offsets":[0,4]}})",
            "abcd")};
}

void execute(const std::string& input) {
  const auto file = read_safetensors(
      put_file(scratch_folder("safetensors") + "/file", input));
  size_t bytes = 0;
  for (const auto& tensor : file.tensors) bytes += tensor.value.nbytes();
  law(bytes < input.size(), "tensors are no larger than their file");
  const std::string path = scratch_folder("safetensors") + "/again";
  const auto checksum = write_safetensors(path, file.tensors, file.metadata);
  const auto again = read_safetensors(path);
  law(again.checksum == checksum, "what was written has its checksum");
  law(again.metadata == file.metadata, "metadata stay what they are");
  law(same_bits(again.tensors, file.tensors), "tensors stay what they are");
}

const Registered registered({"safetensors", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
