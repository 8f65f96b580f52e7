#include "reformer/io/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/io/file_support.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

constexpr at::ScalarType kTypes[] = {
    at::kDouble, at::kFloat,  at::kHalf,   at::kBFloat16,     at::kLong,
    at::kInt,    at::kShort,  at::kChar,   at::kByte,         at::kBool,
    at::kUInt16, at::kUInt32, at::kUInt64, at::kFloat8_e4m3fn};

// Bytes of every kind, so that infinities and NaNs are among the numbers.
at::Tensor any_bits(const std::vector<int64_t>& shape, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape, type);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  const unsigned values = type == at::kBool ? 2 : 256;
  for (size_t i = 0; i < tensor.nbytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(i * 151 % 257 % values);
  }
  return tensor;
}

// A few tensors with odd places, every offset a byte further.
std::vector<NamedTensor> some_tensors() {
  return {{"z.flags", any_bits({3}, at::kBool)},
          {"scalar", any_bits({}, at::kDouble)},
          {"none", any_bits({2, 0, 3}, at::kFloat)},
          {"a.weight", any_bits({2, 3}, at::kFloat)}};
}

uint64_t header_length(const std::string& bytes) {
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length;
}

nlohmann::ordered_json header_of(const std::string& bytes) {
  return nlohmann::ordered_json::parse(bytes.substr(8, header_length(bytes)));
}

// A file by hand.
std::string file_with(const std::string& header, size_t data_size) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + std::string(data_size, '\1');
}

class SafetensorsTest : public testing::Test {
 protected:
  std::string write(const std::vector<NamedTensor>& tensors,
                    const Metadata& metadata = {}) {
    return write_safetensors(path_, tensors, metadata);
  }
  SafetensorsFile read() { return read_safetensors(path_); }

  // The error's message, which has to begin with the file's name.
  std::string fault_in(const std::string& bytes) {
    put_bytes(path_, bytes);
    const std::string message = error_of([&] { read(); });
    if (!message.starts_with(path_ + ": ")) return "no error";
    return message.substr(path_.size() + 2);
  }

  void expect_fault(const std::string& bytes, const std::string& fault) {
    EXPECT_NE(fault_in(bytes).find(fault), std::string::npos)
        << "wanted '" << fault << "', got '" << fault_in(bytes) << "'";
  }

  // The same for one tensor 'x' of 4 bytes with this entry in the header.
  void expect_entry_fault(const std::string& entry, const std::string& fault) {
    expect_fault(file_with("{\"x\":" + entry + "}", 4), fault);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "some.safetensors";
};

TEST_F(SafetensorsTest, EveryTypeAndShapeComesBackBitForBit) {
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {0}, {1}, {33}, {2, 0, 3}, {5, 7}, {2, 1, 3, 4}};
  std::vector<NamedTensor> tensors;
  for (const auto type : kTypes) {
    for (const auto& shape : shapes) {
      tensors.push_back(
          {std::to_string(tensors.size()), any_bits(shape, type)});
    }
  }
  write(tensors);
  EXPECT_TRUE(same_bits(read().tensors, tensors));
}

TEST_F(SafetensorsTest, NoTensorsAreAFileToo) {
  write({});
  EXPECT_TRUE(read().tensors.empty());
}

TEST_F(SafetensorsTest, StridesDoNotMatter) {
  const at::Tensor x = at::arange(24, at::kFloat).view({4, 6});
  const std::vector<NamedTensor> tensors = {
      {"transposed", x.t()},
      {"column", x.select(1, 2)},
      {"expanded", x.select(0, 1).expand({3, 6})},
      {"later", x.slice(0, 2)},
      {"parameter", x.clone().requires_grad_()}};
  write(tensors);
  EXPECT_TRUE(same_bits(read().tensors, tensors));
}

TEST_F(SafetensorsTest, TensorsComeInTheOrderOfTheirBytes) {
  std::string header =
      R"({"late":{"dtype":"I32","shape":[1],"data_offsets":[4,8]},)"
      R"("none":{"dtype":"I32","shape":[0],"data_offsets":[4,4]},)"
      R"("early":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  put_bytes(path_, file_with(header, 8));
  const auto file = read();
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[0].name, "early");
  EXPECT_EQ(file.tensors[1].name, "none");
  EXPECT_EQ(file.tensors[2].name, "late");
  EXPECT_EQ(file.tensors[2].value.item<int>(), 0x01010101);
  EXPECT_EQ(file.checksum, "");
}

TEST_F(SafetensorsTest, MetadataComeBackWithoutTheChecksum) {
  const Metadata metadata = {{"step", "12"}, {"odd \"\n\\", "sömething"}};
  const std::string checksum = write(some_tensors(), metadata);
  EXPECT_EQ(read().metadata, metadata);
  EXPECT_EQ(read().checksum, checksum);
}

TEST_F(SafetensorsTest, MetadataMayBeMissing) {
  put_bytes(path_, file_with("{}", 0));
  EXPECT_TRUE(read().metadata.empty());
}

TEST_F(SafetensorsTest, DataBeginAtAMultipleOfEightBytes) {
  for (int size = 1; size < 10; ++size) {
    write({{std::string(size, 'x'), at::ones({2})}});
    const std::string bytes = bytes_of(path_);
    EXPECT_EQ(header_length(bytes) % 8, 0u);
    EXPECT_EQ(bytes.size(), 8 + header_length(bytes) + 8);
    EXPECT_EQ(bytes[8], '{');
  }
}

TEST_F(SafetensorsTest, HeaderTellsTypeShapeAndPlace) {
  write(some_tensors(), {{"step", "12"}});
  auto header = header_of(bytes_of(path_));
  EXPECT_EQ(header["__metadata__"]["step"], "12");
  EXPECT_EQ(header["z.flags"].dump(),
            R"({"dtype":"BOOL","shape":[3],"data_offsets":[0,3]})");
  EXPECT_EQ(header["scalar"].dump(),
            R"({"dtype":"F64","shape":[],"data_offsets":[3,11]})");
  EXPECT_EQ(header["none"].dump(),
            R"({"dtype":"F32","shape":[2,0,3],"data_offsets":[11,11]})");
  EXPECT_EQ(header["a.weight"].dump(),
            R"({"dtype":"F32","shape":[2,3],"data_offsets":[11,35]})");
}

TEST_F(SafetensorsTest, ChecksumKnowsContentsAndNotTheirOrder) {
  const at::Tensor a = at::arange(4, at::kInt);
  const at::Tensor b = a.add(1);
  const std::string checksum = write({{"a", a}, {"b", b}}, {{"k", "v"}});
  EXPECT_EQ(write({{"b", b}, {"a", a}}, {{"k", "v"}}), checksum);
  EXPECT_NE(write({{"a", b}, {"b", a}}, {{"k", "v"}}), checksum);
  EXPECT_NE(write({{"a", a}, {"c", b}}, {{"k", "v"}}), checksum);
  EXPECT_NE(write({{"a", a}, {"b", b}}, {{"k", "w"}}), checksum);
  EXPECT_NE(write({{"a", a.view({2, 2})}, {"b", b}}, {{"k", "v"}}), checksum);
  EXPECT_NE(write({{"a", a.view(at::kFloat)}, {"b", b}}, {{"k", "v"}}),
            checksum);
}

TEST_F(SafetensorsTest, WhatCannotBeWrittenIsNamed) {
  const at::Tensor x = at::ones({2});
  const std::pair<std::vector<NamedTensor>, std::string> mistakes[] = {
      {{{"x", x}, {"x", x}}, "two tensors would be 'x'"},
      {{{"__metadata__", x}}, "'__metadata__'"},
      {{{"x", at::Tensor()}}, "tensor 'x' has no values"},
      {{{"x", at::zeros({2}, at::kComplexFloat)}}, "ComplexFloat"},
      {{{"x\xff", x}}, "not UTF-8"}};
  for (const auto& [tensors, fault] : mistakes) {
    const std::string message =
        error_of([&, &tensors = tensors] { write(tensors); });
    EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
    EXPECT_NE(message.find(fault), std::string::npos) << message;
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(SafetensorsTest, AMissingFolderIsAnError) {
  const std::string path = folder_ / "no/such.safetensors";
  EXPECT_EQ(error_of([&] { write_safetensors(path, {}, {}); }),
            path + ": cannot write: No such file or directory");
}

TEST_F(SafetensorsTest, AWriteThatFailsLeavesTheOldFile) {
  write({{"old", at::ones({3})}});
  {
    const FileSizeLimit limit(4096);
    EXPECT_EQ(error_of([&] {
                write({{"new", at::ones({10'000})}});
              }),
              path_ + ": cannot write: File too large");
  }
  EXPECT_EQ(read().tensors.at(0).name, "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(SafetensorsTest, EveryTruncationIsFound) {
  write(some_tensors());
  const std::string bytes = bytes_of(path_);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(fault_in(bytes.substr(0, size)), "no error") << size;
  }
  expect_fault(bytes.substr(0, bytes.size() - 1), "truncated");
  expect_fault(bytes.substr(0, 100), "truncated");
}

TEST_F(SafetensorsTest, EveryFlippedBitIsFound) {
  write(some_tensors(), {{"step", "12"}});
  const std::string bytes = bytes_of(path_);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_NE(fault_in(flipped), "no error") << "bit " << bit << " of " << i;
    }
  }
}

TEST_F(SafetensorsTest, WhatFollowsTheTensorsIsAFault) {
  write(some_tensors());
  expect_fault(bytes_of(path_) + "ab", "2 bytes more");
}

TEST_F(SafetensorsTest, ForeignFilesAreNamedAsSuch) {
  expect_fault("", "is empty");
  expect_fault("abc", "no safetensors file");
  expect_fault("{\"step\": 12, \"loss\": 2.5}\n", "no safetensors file");
  expect_fault(std::string(1000, '\0'), "no safetensors file");
  expect_fault("\x89PNG\r\n\x1a\n{", "no safetensors file");
}

TEST_F(SafetensorsTest, WhatIsNoFileIsNamed) {
  EXPECT_EQ(error_of([&] { read(); }),
            path_ + ": cannot read: No such file or directory");
  fs::create_directory(path_);
  EXPECT_EQ(error_of([&] { read(); }), path_ + ": is not a file");
}

TEST_F(SafetensorsTest, HeadersThatAreNotSoundAreRefused) {
  expect_fault(file_with("{]", 0), "no valid JSON");
  expect_fault(file_with("{} x", 0), "no valid JSON");
  expect_fault(file_with(R"({"__metadata__":{"a":1}})", 0), "no text");
  expect_fault(file_with(R"({"__metadata__":[]})", 0), "no JSON object");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  expect_fault(file_with(deep, 0), "nested deeper than 3 levels");
  const std::string entry = R"({"dtype":"U8","shape":[1],)";
  expect_fault(file_with("{\"x\":" + entry + "\"data_offsets\":[0,1]},\"x\":" +
                             entry + "\"data_offsets\":[1,2]}}",
                         2),
               "'x' is given twice");
}

TEST_F(SafetensorsTest, EntriesThatAreNotSoundAreRefused) {
  const auto entry = [](const std::string& type, const std::string& shape,
                        const std::string& offsets) {
    return "{\"dtype\":\"" + type + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}";
  };
  expect_entry_fault("1", "tensor 'x': expected dtype");
  expect_entry_fault("{}", "expected dtype, shape and data_offsets");
  expect_entry_fault(R"({"dtype":1,"shape":[],"data_offsets":[0,4]})",
                     "dtype is no text");
  expect_entry_fault(R"({"dtyp":"F32","shape":[],"data_offsets":[0,4]})",
                     "no 'dtype'");
  expect_entry_fault(entry("F31", "[1]", "[0,4]"), "type F31 is unknown");
  expect_entry_fault(entry("F32", "1", "[0,4]"), "not a list");
  expect_entry_fault(entry("F32", "[1.0]", "[0,4]"), "not a whole number");
  expect_entry_fault(entry("F32", "[-1]", "[0,4]"), "not a whole number");
  expect_entry_fault(entry("F32", "[[]]", "[0,4]"), "nested deeper");
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_entry_fault(entry("F32", ones + "]", "[0,4]"), "more than 64");
  expect_entry_fault(entry("F32", "[1]", "[0]"), "not two");
  expect_entry_fault(entry("F32", "[1]", "[4,0]"), "do not fit its shape");
  expect_entry_fault(entry("F32", "[2]", "[0,4]"), "do not fit its shape");
  expect_entry_fault(entry("F32", "[1]", "[0,8]"), "do not fit its shape");
  expect_entry_fault(entry("F32", "[2]", "[0,8]"), "truncated");
  expect_entry_fault(entry("U8", "[3]", "[0,3]"), "1 bytes more");
  expect_entry_fault(entry("U8", "[3]", "[1,4]"), "unused bytes");
  expect_entry_fault(entry("F32", "[4611686018427387905]", "[0,4]"),
                     "too large");
  expect_entry_fault(entry("U8", "[18446744073709551615]", "[0,4]"),
                     "too large");
  expect_entry_fault(
      entry("U8", "[0,4611686018427387904,4611686018427387904]", "[0,0]"),
      "too large");
  expect_entry_fault(
      entry("F32", "[1]", "[0,4]") + ",\"y\":" + entry("F32", "[1]", "[0,4]"),
      "overlaps");
}

TEST_F(SafetensorsTest, ABoolIsZeroOrOne) {
  std::string bytes = file_with(
      R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  put_bytes(path_, bytes);
  EXPECT_TRUE(same_bits(read().tensors.at(0).value, at::ones({2}, at::kBool)));
  bytes.back() = 2;
  expect_fault(bytes, "neither 0 nor 1");
}

// What safetensors_python_test.py expects: 0, 1, 2, ... in every type.
std::vector<NamedTensor> python_tensors() {
  std::vector<NamedTensor> tensors;
  for (const auto type :
       {at::kBool, at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
        at::kInt, at::kShort, at::kChar, at::kByte}) {
    const int64_t most = type == at::kBool ? 2 : 100;
    const at::Tensor values = at::arange(6, at::kLong).remainder(most);
    tensors.push_back({std::string("numbers.") + c10::toString(type),
                       values.to(type).view({2, 3})});
  }
  tensors.push_back({"scalar", at::full({}, 7.5, at::kDouble)});
  tensors.push_back({"none", at::zeros({2, 0, 3}, at::kFloat)});
  return tensors;
}

TEST_F(SafetensorsTest, WritesTheFileThatPythonOpens) {
  const char* given = std::getenv("REFORMER_SAFETENSORS_WRITE");
  if (!given) GTEST_SKIP() << "run by safetensors_python_test.py";
  write_safetensors(given, python_tensors(), {{"step", "12"}});
}

TEST_F(SafetensorsTest, OpensTheFileThatPythonWrites) {
  const char* given = std::getenv("REFORMER_SAFETENSORS_READ");
  if (!given) GTEST_SKIP() << "run by safetensors_python_test.py";
  const auto file = read_safetensors(given);
  const auto expected = python_tensors();
  ASSERT_EQ(file.tensors.size(), expected.size());
  for (const auto& [name, value] : file.tensors) {
    const auto same = std::find_if(expected.begin(), expected.end(),
                                   [&name = name](const NamedTensor& tensor) {
                                     return tensor.name == name;
                                   });
    ASSERT_NE(same, expected.end()) << name;
    EXPECT_TRUE(same_bits(value, same->value)) << name;
  }
  EXPECT_EQ(file.metadata.at("step"), "12");
}

}  // namespace
}  // namespace reformer
