#include "reformer/data/collection.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/data/archive_faults.h"
#include "reformer/data/byte_file.h"

namespace reformer {
namespace {

// A ByteFile from its beginning to its end. `done` follows it, from `before`
// on.
class FileStream : public ByteStream {
 public:
  FileStream(const std::string& path, int64_t before, int64_t& done)
      : file_(path), before_(before), done_(done) {}

  size_t read(std::span<uint8_t> out) override {
    const auto left = static_cast<size_t>(file_.size() - at_);
    const size_t n = std::min(out.size(), left);
    file_.read(at_, out.first(n));
    at_ += static_cast<int64_t>(n);
    done_ = before_ + at_;
    return n;
  }

  bool seekable() const override { return true; }
  int64_t seek(int64_t offset, int whence) override {
    const int64_t origin = whence == SEEK_SET   ? 0
                           : whence == SEEK_CUR ? at_
                                                : file_.size();
    // An archive's own numbers: any.
    int64_t target;
    if (__builtin_add_overflow(origin, offset, &target)) target = file_.size();
    at_ = std::clamp<int64_t>(target, 0, file_.size());
    return at_;
  }

 private:
  ByteFile file_;
  int64_t before_;
  int64_t& done_;
  int64_t at_ = 0;
};

class NoBytes : public ByteStream {
 public:
  size_t read(std::span<uint8_t>) override { return 0; }
};

bool is_hidden(const std::string& name) {
  const std::filesystem::path path(name);
  return std::any_of(path.begin(), path.end(), [](const auto& part) {
    const std::string text = part.string();
    return text.starts_with(".") && text != "." && text != "..";
  });
}

// `path` is the way to it from anywhere, `name` that from the collection: empty
// where the collection is this very archive, whose members then are by their
// own names. An archive may hold itself: `depth` are those around it. `count`
// is told of everything that comes out, archives too: many that hold nothing
// take their time as well.
void visit_all(const std::string& path, const std::string& name,
               ByteStream& bytes, const VisitMember& visit,
               const std::function<void(size_t)>& count, int depth = 0) {
  // Bytes that even an empty one counts as: no fewer are read in that time.
  constexpr size_t kMember = 512;
  constexpr size_t kArchive = 64 << 10;
  constexpr int kDeepest = 8;
  require(depth < kDeepest, "cannot read ", path,
          ": archives within archives, more than ", kDeepest,
          " of them; unpack it by hand, or leave it out");
  for_each_in_archive(
      path, bytes, [&](const std::string& inner, ByteStream& member) {
        const bool archive = archive_kind(inner) != ArchiveKind::kNone;
        count(archive ? kArchive : kMember);
        if (is_hidden(inner)) return;
        const std::string whole = name.empty() ? inner : name + "/" + inner;
        CountedStream counted(member, count);
        if (!archive) {
          visit(whole, counted);
        } else {
          visit_all(path + "/" + inner, whole, counted, visit, count,
                    depth + 1);
        }
      });
}

}  // namespace

Collection::Collection(const std::string& path)
    : path_(path), files_(files_of(path)) {
  take_size();
}

Collection::Collection(const std::string& path,
                       const std::vector<std::string>& files)
    : path_(path) {
  for (const auto& file : files) {
    for (auto& listed : files_of(file)) files_.push_back(std::move(listed));
  }
  take_size();
}

void Collection::take_size() {
  for (const auto& file : files_) size_ += file.size;
  require(size_ > 0, path_,
          is_folder(path_) ? ": a folder without a byte in its files"
                           : " is empty");
}

void Collection::for_each(const VisitMember& visit) {
  int64_t before = 0;
  Expansion expansion(path_, size_);
  const auto count = [&](size_t n) { expansion.add_output(n); };
  for (const auto& file : files_) {
    visit_file(file, before, visit, count);
    before += file.size;
    done_ = before;
  }
}

void Collection::visit_file(const ListedFile& file, int64_t before,
                            const VisitMember& visit,
                            const std::function<void(size_t)>& count) {
  const bool archive = archive_kind(file.name) != ArchiveKind::kNone;
  if (file.size == 0 && !archive) {  // which no ByteFile opens
    NoBytes nothing;
    visit(file.name, nothing);
    return;
  }
  FileStream bytes(file.path, before, done_);
  if (archive) {
    visit_all(file.path, is_folder(path_) ? file.name : "", bytes, visit,
              count);
  } else {
    visit(file.name, bytes);
  }
}

}  // namespace reformer
