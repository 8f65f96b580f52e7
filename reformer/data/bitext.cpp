#include "reformer/data/bitext.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "reformer/base/errors.h"
#include "reformer/base/machine_memory.h"
#include "reformer/data/decoded_images.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr const char* kPackings[] = {"", ".gz", ".xz", ".zst", ".bz2"};
constexpr int64_t kPart = 1 << 20;

struct NamedFile {
  std::string name;
  std::string text;
};

// A file that waits for its partner, in memory.
NamedFile whole(const std::string& name, ByteStream& member) {
  try {
    return {name, read_all(member, static_cast<size_t>(machine_memory() / 4))};
  } catch (const Error& error) {
    throw Error("cannot read " + name + ": " + error.what());
  }
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  return text;
}

// Takes the first line off `rest`, which is not empty.
std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

int64_t count_lines(std::string_view text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return ends + (!text.empty() && !text.ends_with('\n'));
}

// Writes pairs of lines into the cache.
class PairWriter {
 public:
  explicit PairWriter(const AppendPayload& append) : append_(append) {}

  void add(std::string_view source, std::string_view target,
           BitextSplit split) {
    ((waiting_ += source) += '\n') += target;
    waiting_ += '\n';
    labels_ += static_cast<char>(split);
    if (std::ssize(waiting_) >= kPart) flush();
  }

  std::string finish() {
    flush();
    return std::move(labels_);
  }

 private:
  void flush() {
    append_(
        {reinterpret_cast<const uint8_t*>(waiting_.data()), waiting_.size()});
    waiting_.clear();
  }

  const AppendPayload& append_;
  std::string waiting_;
  std::string labels_;
};

void add_pairs(const NamedFile& source, const NamedFile& target,
               BitextSplit split, PairWriter& writer) {
  std::string_view from = without_mark(source.text);
  std::string_view to = without_mark(target.text);
  const int64_t lines = count_lines(from);
  require(lines == count_lines(to), source.name, " has ", lines, " lines and ",
          target.name, " has ", count_lines(to),
          "; as many are required, line by line translations of each other");
  while (!from.empty()) {
    const auto line = take_line(from);
    writer.add(line, take_line(to), split);
  }
}

void add_table(const NamedFile& table, bool target_first, BitextSplit split,
               PairWriter& writer) {
  std::string_view rest = without_mark(table.text);
  for (int64_t number = 1; !rest.empty(); ++number) {
    const auto line = take_line(rest);
    const size_t tab = line.find('\t');
    require(tab != std::string_view::npos, table.name, ": line ", number,
            " has no tab; the source, a tab and the target are required");
    const auto first = line.substr(0, tab);
    auto second = line.substr(tab + 1);
    second = second.substr(0, second.find('\t'));  // further columns
    if (target_first) {
      writer.add(second, first, split);
    } else {
      writer.add(first, second, split);
    }
  }
}

// What the names of partners share: "train." of "train.en", "train..txt" of
// "train.en.txt"; nothing where it is of another language or none.
std::optional<std::string> stem_of(const std::string& name,
                                   const std::string& language) {
  for (const std::string ending : {"", ".txt"}) {
    const std::string wanted = "." + language + ending;
    if (!name.ends_with(wanted)) continue;
    return name.substr(0, name.size() - wanted.size()) + "." + ending;
  }
  return {};
}

// A member of a packed file is "train.en.gz/train.en" in a folder: its own name
// says what it is, the folder before where it lies.
std::string member_name(const std::string& name) {
  const fs::path path(name);
  const fs::path packed = path.parent_path();
  if (archive_kind(packed.filename().string()) == ArchiveKind::kCompressed) {
    return (packed.parent_path() / path.filename()).string();
  }
  return name;
}

// Pairs the files of a folder or an archive by their names.
class NamePairing {
 public:
  NamePairing(const BitextRequest& request, PairWriter& writer)
      : request_(request), writer_(writer) {}

  void add(const std::string& full_name, ByteStream& member) {
    const std::string name = member_name(full_name);
    const auto split = bitext_split_named(name);
    if (name.ends_with(".tsv")) {
      add_table(whole(name, member), is_reversed(name), split, writer_);
      ++found_;
      return;
    }
    for (const bool source : {true, false}) {
      const auto stem =
          stem_of(name, source ? request_.source : request_.target);
      if (!stem) continue;
      take(whole(name, member), *stem, source, split);
      return;
    }
    ++others_;
  }

  void finish() const {
    for (const auto& [stem, side] : waiting_) {
      throw Error(request_.data + ": " + side.file.name +
                  " has no partner in " +
                  (side.is_source ? request_.target : request_.source) +
                  " of the same name");
    }
    require(found_ > 0, request_.data, ": no pair of files NAME.",
            request_.source, " and NAME.", request_.target,
            " and no .tsv among ", others_,
            " files; task.source_language and task.target_language name the "
            "languages");
  }

 private:
  struct Side {
    NamedFile file;
    bool is_source;
  };

  // "train.de-en.tsv" has German first.
  bool is_reversed(const std::string& name) const {
    return name.find(request_.target + "-" + request_.source) !=
           std::string::npos;
  }

  void take(NamedFile file, const std::string& stem, bool is_source,
            BitextSplit split) {
    const auto other = waiting_.find(stem);
    if (other == waiting_.end()) {
      waiting_.emplace(stem, Side{std::move(file), is_source});
      return;
    }
    require(other->second.is_source != is_source, request_.data, ": ",
            file.name, " is there twice");
    const auto& partner = other->second.file;
    add_pairs(is_source ? file : partner, is_source ? partner : file, split,
              writer_);
    waiting_.erase(other);
    ++found_;
  }

  const BitextRequest& request_;
  PairWriter& writer_;
  std::map<std::string, Side> waiting_;  // by stem
  int64_t found_ = 0;
  int64_t others_ = 0;
};

void add_two_files(Collection& collection, const BitextRequest& request,
                   PairWriter& writer) {
  std::vector<NamedFile> files;
  collection.for_each([&](const std::string& name, ByteStream& member) {
    require(files.size() < 2, request.data,
            ": two plain or packed files are required, these hold more");
    files.push_back(whole(name, member));
  });
  require(files.size() == 2, request.data, ": two files are required, got ",
          files.size());
  add_pairs(files[0], files[1], BitextSplit::kTrain, writer);
}

// The file itself or one of its packings; empty where there is none.
std::string existing(const std::string& path) {
  for (const char* packing : kPackings) {
    if (fs::is_regular_file(path + packing)) return path + packing;
  }
  return "";
}

}  // namespace

BitextSplit bitext_split_named(const std::string& name) {
  const auto is_dev = [](const fs::path& part) {
    const std::string text = part.string();
    return text.starts_with("dev") &&
           (text.size() == 3 ||
            !std::isalpha(static_cast<unsigned char>(text[3])));
  };
  const fs::path path(name);
  if (std::any_of(path.begin(), path.end(), is_dev)) {
    return BitextSplit::kValidation;
  }
  return static_cast<BitextSplit>(split_named(name));
}

std::vector<std::string> bitext_files(const BitextRequest& request) {
  const std::string& data = request.data;
  std::error_code ignored;
  if (fs::exists(data, ignored)) return {};
  const size_t comma = data.find(',');
  if (comma != std::string::npos) {
    return {data.substr(0, comma), data.substr(comma + 1)};
  }
  const std::string source = existing(data + "." + request.source);
  const std::string target = existing(data + "." + request.target);
  require(!source.empty() && !target.empty(), "cannot read ", data,
          ": neither it nor ", data, ".",
          source.empty() ? request.source : request.target,
          " is there; two files with a comma between them, a .tsv, a folder or "
          "an archive are required");
  return {source, target};
}

std::shared_ptr<const CacheFile> open_bitext(const BitextRequest& request,
                                             DecodeObserver& observer) {
  const auto files = bitext_files(request);
  const auto decode = [&](Collection& collection, const AppendPayload& append) {
    PairWriter writer(append);
    if (!files.empty()) {
      add_two_files(collection, request, writer);
    } else if (!is_folder(request.data) &&
               archive_kind(request.data) == ArchiveKind::kNone) {
      collection.for_each([&](const std::string& name, ByteStream& member) {
        add_table(whole(name, member), /*target_first=*/false,
                  BitextSplit::kTrain, writer);
      });
    } else {
      NamePairing pairing(request, writer);
      collection.for_each([&](const std::string& name, ByteStream& member) {
        pairing.add(name, member);
      });
      pairing.finish();
    }
    return Decoded{writer.finish()};
  };
  return cached({request.cache, request.data,
                 "bitext 1 " + request.source + " " + request.target, files},
                decode, observer);
}

bool BitextReader::next_line(std::string& line) {
  line.clear();
  while (true) {
    if (used_ == part_.size()) {
      const int64_t left = payload_.size() - at_;
      if (left == 0) return false;
      part_.resize(static_cast<size_t>(std::min(kPart, left)));
      payload_.read(at_, part_);
      at_ += std::ssize(part_);
      used_ = 0;
    }
    const auto begin = part_.begin() + std::ptrdiff_t(used_);
    const auto end = std::find(begin, part_.end(), uint8_t('\n'));
    line.append(begin, end);
    used_ = size_t(end - part_.begin());
    if (end == part_.end()) continue;
    ++used_;
    return true;
  }
}

bool BitextReader::next(LinePair& pair) {
  return next_line(pair.source) && next_line(pair.target);
}

}  // namespace reformer
