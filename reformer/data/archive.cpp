#include "reformer/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <vector>

#include "reformer/core/errors.h"

namespace reformer {
namespace {

// Reads `input` through libarchive, whose C functions no exception may cross:
// what `input` throws is kept, and thrown when they have returned.
class Reader {
 public:
  Reader(const std::string& path, ByteStream& input)
      : path_(path), input_(input), handle_(archive_read_new()) {
    choose_format();
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
      require_compressed();
      const bool ordinary = archive_entry_filetype(entry_) == AE_IFREG &&
                            archive_entry_hardlink(entry_) == nullptr;
      if (ordinary) return true;
    }
  }

  // A name that this system cannot write is replaced: it is one of many.
  std::string name() const {
    if (archive_kind(path_) == ArchiveKind::kCompressed) {
      return std::filesystem::path(path_).stem().string();
    }
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
      if (n < 0) throw_damaged("its member " + name() + " is damaged");
      return static_cast<size_t>(n);
    }
  }

 private:
  struct Free {
    void operator()(archive* handle) const { archive_read_free(handle); }
  };

  // By the name alone: libarchive would take any bytes for something.
  void choose_format() {
    const ArchiveKind kind = archive_kind(path_);
    archive* handle = handle_.get();
    if (kind == ArchiveKind::kZip) archive_read_support_format_zip(handle);
    if (kind == ArchiveKind::kTar) archive_read_support_format_tar(handle);
    if (kind == ArchiveKind::kCompressed) {
      archive_read_support_format_raw(handle);
    }
    if (kind == ArchiveKind::kZip) return;
    archive_read_support_filter_gzip(handle);
    archive_read_support_filter_xz(handle);
    archive_read_support_filter_zstd(handle);
    archive_read_support_filter_bzip2(handle);
  }

  void require_compressed() {
    require(archive_kind(path_) != ArchiveKind::kCompressed ||
                archive_filter_code(handle_.get(), 0) != ARCHIVE_FILTER_NONE,
            "cannot read ", path_,
            ": it is not compressed, whatever its name says; rename it");
  }

  void require_good(int result, const std::string& fault) {
    // A warning is about attributes that nobody reads here.
    if (result < ARCHIVE_WARN) throw_damaged(fault);
  }

  [[noreturn]] void throw_damaged(const std::string& fault) {
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

}  // namespace

void for_each_in_archive(const std::string& path, ByteStream& archive,
                         const VisitMember& visit) {
  Reader reader(path, archive);
  while (reader.next()) {
    MemberStream member(reader);
    visit(reader.name(), member);
  }
}

}  // namespace reformer
