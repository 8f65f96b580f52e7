#include "reformer/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/data/archive_faults.h"
#include "reformer/data/gzip.h"

namespace reformer {
namespace {

// Reads `input` through libarchive, whose C functions no exception may cross:
// what `input` throws is kept, and thrown when they have returned.
class Reader {
 public:
  // A tar or a zip; or one file, compressed by `filter`.
  Reader(const std::string& path, ByteStream& input, ArchiveKind kind,
         int filter = ARCHIVE_FILTER_NONE)
      : path_(path), input_(input), kind_(kind), handle_(archive_read_new()) {
    choose_format(filter);
    archive_read_set_callback_data(handle_.get(), this);
    archive_read_set_read_callback(handle_.get(), read_input);
    if (input.seekable()) {
      archive_read_set_seek_callback(handle_.get(), seek_input);
    }
    require_good(archive_read_open1(handle_.get()),
                 "it is no such archive, or damaged");
  }

  // Goes to the next ordinary file; false after the last.
  bool next() {
    while (true) {
      const int result = archive_read_next_header(handle_.get(), &entry_);
      if (result == ARCHIVE_EOF) return false;
      require_good(result, "it is damaged");
      const bool ordinary = archive_entry_filetype(entry_) == AE_IFREG &&
                            archive_entry_hardlink(entry_) == nullptr;
      if (ordinary) return true;
    }
  }

  // A name that this system cannot write is replaced: it is one of many.
  std::string name() const {
    for (const char* name : {archive_entry_pathname(entry_),
                             archive_entry_pathname_utf8(entry_)}) {
      if (name != nullptr) return name;
    }
    return "a member whose name cannot be read";
  }

  size_t read(std::span<uint8_t> out) {
    while (true) {
      const auto n = archive_read_data(handle_.get(), out.data(), out.size());
      if (n == ARCHIVE_RETRY) continue;
      if (n < 0) throw_fault(fault_in_data());
      return static_cast<size_t>(n);
    }
  }

 private:
  struct Free {
    void operator()(archive* handle) const { archive_read_free(handle); }
  };

  std::string fault_in_data() const {
    if (kind_ == ArchiveKind::kCompressed) return "it is damaged";
    return "its member " + name() + " is damaged";
  }

  // Told, not guessed: libarchive would take any bytes for something, and
  // undo compression as often as it finds it.
  void choose_format(int filter) {
    archive* handle = handle_.get();
    if (kind_ == ArchiveKind::kZip) archive_read_support_format_zip(handle);
    if (kind_ == ArchiveKind::kTar) archive_read_support_format_tar(handle);
    if (kind_ == ArchiveKind::kCompressed) {
      archive_read_support_format_raw(handle);
      archive_read_append_filter(handle, filter);
    }
  }

  void require_good(int result, const std::string& fault) {
    // A warning is about attributes that nobody reads here.
    if (result < ARCHIVE_WARN) throw_fault(fault);
  }

  [[noreturn]] void throw_fault(const std::string& fault) {
    if (thrown_) std::rethrow_exception(thrown_);
    const char* reason = archive_error_string(handle_.get());
    throw Error("cannot read " + path_ + ": " + fault + " (" +
                (reason != nullptr ? reason : "no reason given") +
                "); get it again, or leave it out");
  }

  template <class Call>
  int64_t guarded(const Call& call) {
    try {
      return call();
    } catch (...) {
      thrown_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  static la_ssize_t read_input(archive*, void* self, const void** out) {
    auto& reader = *static_cast<Reader*>(self);
    *out = reader.part_.data();
    return reader.guarded(
        [&] { return static_cast<int64_t>(reader.input_.read(reader.part_)); });
  }

  static la_int64_t seek_input(archive*, void* self, la_int64_t offset,
                               int whence) {
    auto& reader = *static_cast<Reader*>(self);
    return reader.guarded([&] { return reader.input_.seek(offset, whence); });
  }

  std::string path_;
  ByteStream& input_;
  ArchiveKind kind_;
  std::vector<uint8_t> part_ = std::vector<uint8_t>(1 << 16);
  std::exception_ptr thrown_;
  std::unique_ptr<archive, Free> handle_;
  archive_entry* entry_ = nullptr;
};

class MemberStream : public ByteStream {
 public:
  explicit MemberStream(Reader& reader) : reader_(reader) {}
  size_t read(std::span<uint8_t> out) override { return reader_.read(out); }

 private:
  Reader& reader_;
};

void visit_members(const std::string& path, ByteStream& archive,
                   ArchiveKind kind, const VisitMember& visit) {
  Reader reader(path, archive, kind);
  while (reader.next()) {
    MemberStream member(reader);
    visit(reader.name(), member);
  }
}

// A stream whose first bytes can be looked at before they are read.
class PeekedStream : public ByteStream {
 public:
  explicit PeekedStream(ByteStream& stream) : stream_(stream) {
    first_.resize(read_up_to(stream, first_));
  }

  bool begins_with(std::string_view magic) const {
    return first_.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), first_.begin(),
                      [](char a, uint8_t b) { return uint8_t(a) == b; });
  }

  size_t read(std::span<uint8_t> out) override {
    if (at_ == first_.size()) return stream_.read(out);
    const size_t n = std::min(out.size(), first_.size() - at_);
    std::copy_n(first_.begin() + static_cast<ptrdiff_t>(at_), n, out.begin());
    at_ += n;
    return n;
  }

 private:
  ByteStream& stream_;
  std::vector<uint8_t> first_ = std::vector<uint8_t>(6);
  size_t at_ = 0;
};

// What libarchive makes of a compressed file.
class FilteredStream : public ByteStream {
 public:
  FilteredStream(const std::string& path, ByteStream& input, int filter)
      : expansion_(path),
        input_(input, [this](size_t n) { expansion_.add_input(n); }),
        reader_(path, input_, ArchiveKind::kCompressed, filter),
        more_(reader_.next()) {}

  size_t read(std::span<uint8_t> out) override {
    const size_t n = more_ ? reader_.read(out) : 0;
    expansion_.add_output(n);
    return n;
  }

 private:
  Expansion expansion_;
  CountedStream input_;
  Reader reader_;
  bool more_;
};

// Null where it is not compressed.
std::unique_ptr<ByteStream> decompressed(const std::string& path,
                                         PeekedStream& input) {
  constexpr std::pair<std::string_view, int> kFilters[] = {
      {std::string_view("\xfd"
                        "7zXZ\0",
                        6),
       ARCHIVE_FILTER_XZ},
      {"\x28\xb5\x2f\xfd", ARCHIVE_FILTER_ZSTD},
      {"BZh", ARCHIVE_FILTER_BZIP2}};
  if (input.begins_with("\x1f\x8b")) return open_gzip(path, input);
  for (const auto& [magic, filter] : kFilters) {
    if (input.begins_with(magic)) {
      return std::make_unique<FilteredStream>(path, input, filter);
    }
  }
  return nullptr;
}

// The checksums come last, behind what a tar or its reader takes for the end.
void read_to_the_end(ByteStream& stream) {
  std::vector<uint8_t> part(1 << 16);
  while (stream.read(part) > 0) {
  }
}

}  // namespace

void for_each_in_archive(const std::string& path, ByteStream& archive,
                         const VisitMember& visit) {
  const ArchiveKind kind = archive_kind(path);
  if (kind == ArchiveKind::kZip) {
    return visit_members(path, archive, kind, visit);
  }
  PeekedStream whole(archive);
  const auto stream = decompressed(path, whole);
  if (kind == ArchiveKind::kTar) {
    visit_members(path, stream ? *stream : whole, kind, visit);
  } else {
    require(stream != nullptr, "cannot read ", path,
            ": it is not compressed, whatever its name says; rename it");
    visit(std::filesystem::path(path).stem().string(), *stream);
  }
  if (stream) read_to_the_end(*stream);
}

}  // namespace reformer
