#include "reformer/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/base/input_file.h"
#include "reformer/base/json_text.h"

namespace reformer {

namespace {

using Json = nlohmann::ordered_json;  // as it is written
// As it is read: finding a member takes no longer for there being many.
using SortedJson = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";

constexpr std::pair<const char*, at::ScalarType> kTypes[] = {
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U64", at::kUInt64},
    {"U32", at::kUInt32},
    {"U16", at::kUInt16},
    {"U8", at::kByte},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"BOOL", at::kBool},
};

at::ScalarType type_named(const std::string& name) {
  for (const auto& [known, type] : kTypes) {
    if (name == known) return type;
  }
  throw Unreadable("the type " + name +
                   " is unknown; a newer program may have written it");
}

// Objects of objects of lists, and no deeper. A million tensors are more than
// any model has, 64 dimensions more than LibTorch computes with.
SortedJson parse_header_json(const std::string& text) {
  const JsonLimits limits{3, 1 << 20, 64};
  try {
    return parse_json<SortedJson>(text, limits);
  } catch (const JsonError& error) {
    throw Error(std::string("the header is damaged: ") + error.what());
  }
}

int64_t parse_size(const SortedJson& json) {
  require(json.is_number_unsigned(), "not a whole number: ", json.dump());
  const auto size = json.get<uint64_t>();
  require(size <= std::numeric_limits<int64_t>::max(), size, " is too large");
  return static_cast<int64_t>(size);
}

std::vector<int64_t> parse_sizes(const SortedJson& json) {
  require(json.is_array(), "not a list: ", json.dump());
  std::vector<int64_t> sizes;
  for (const SortedJson& size : json) sizes.push_back(parse_size(size));
  return sizes;
}

const SortedJson& member(const SortedJson& object, const char* key) {
  const auto found = object.find(key);
  require(found != object.end(), "no '", key, "'");
  return *found;
}

int64_t byte_count(const TensorEntry& entry) {
  int64_t count = static_cast<int64_t>(c10::elementSize(entry.type));
  bool empty = false;
  // The product must be possible without the zeros too: LibTorch computes
  // strides that way.
  for (const int64_t size : entry.shape) {
    empty |= size == 0;
    require(!__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count),
            "the shape is too large");
  }
  return empty ? 0 : count;
}

TensorEntry parse_entry(const std::string& name, const SortedJson& json) {
  require(json.is_object() && json.size() == 3,
          "expected dtype, shape and data_offsets");
  const SortedJson& type = member(json, "dtype");
  require(type.is_string(), "dtype is no text");
  const auto offsets = parse_sizes(member(json, "data_offsets"));
  require(offsets.size() == 2, "data_offsets are not two");
  TensorEntry entry{name, type_named(type), parse_sizes(member(json, "shape")),
                    offsets[0], offsets[1]};
  require(
      entry.begin <= entry.end && entry.end - entry.begin == byte_count(entry),
      "offsets ", entry.begin, " to ", entry.end, " do not fit its shape");
  return entry;
}

TensorEntry parse_named_entry(const std::string& name, const SortedJson& json) {
  try {
    return parse_entry(name, json);
  } catch (const Unreadable& error) {
    throw Unreadable("tensor '" + name + "': " + error.what());
  } catch (const Error& error) {
    throw Error("tensor '" + name + "': " + error.what());
  }
}

Metadata parse_metadata(const SortedJson& json) {
  require(json.is_object(), "the metadata are no JSON object");
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    require(value.is_string(), "metadata '", key, "' is no text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

void sort_by_place(std::vector<TensorEntry>& entries) {
  const auto place = [](const TensorEntry& entry) {
    return std::pair(entry.begin, entry.end);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const TensorEntry& a, const TensorEntry& b) {
                     return place(a) < place(b);
                   });
}

void check_places(const std::vector<TensorEntry>& entries, int64_t data_size) {
  int64_t filled = 0;
  for (const TensorEntry& entry : entries) {
    require(entry.begin >= filled, "tensor '", entry.name,
            "' overlaps the one before it");
    require(entry.begin == filled, "unused bytes before tensor '", entry.name,
            "'");
    require(entry.end <= data_size, "truncated: tensor '", entry.name,
            "' ends at byte ", entry.end, " of the data, of which there are ",
            data_size);
    filled = entry.end;
  }
  require(filled == data_size, data_size - filled,
          " bytes more than the header tells of");
}

Json entry_json(const TensorEntry& entry) {
  return Json{{"dtype", type_name(entry.type)},
              {"shape", entry.shape},
              {"data_offsets", {entry.begin, entry.end}}};
}

}  // namespace

std::string type_name(at::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (type == known) return name;
  }
  throw Error(std::string("safetensors have no type ") + c10::toString(type));
}

std::string render_header(const SafetensorsHeader& header) {
  Json json = Json::object();
  json[kMetadata] = header.metadata;
  std::set<std::string> names{kMetadata};
  for (const TensorEntry& entry : header.entries) {
    require(names.insert(entry.name).second, "two tensors would be '",
            entry.name, "'");
    // operator[] would search all that is there before.
    json.get_ref<Json::object_t&>().emplace_back(entry.name, entry_json(entry));
  }
  try {
    std::string text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const Json::exception&) {
    throw Error("a name or the metadata are not UTF-8");
  }
}

SafetensorsHeader parse_header(const std::string& text, int64_t data_size) {
  const SortedJson json = parse_header_json(text);
  require(json.is_object(), "the header is no JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      header.metadata = parse_metadata(value);
    } else {
      header.entries.push_back(parse_named_entry(name, value));
    }
  }
  sort_by_place(header.entries);
  check_places(header.entries, data_size);
  return header;
}

}  // namespace reformer
