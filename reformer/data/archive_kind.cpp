#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "reformer/data/archive.h"

namespace reformer {
namespace {

bool ends_in(const std::string& name,
             std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) {
    return name.ends_with(ending);
  });
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

ArchiveKind archive_kind(const std::string& name) {
  const std::string lower = lower_case(name);
  if (ends_in(lower, {".tar", ".tgz", ".txz", ".tzst", ".tbz2", ".tar.gz",
                      ".tar.xz", ".tar.zst", ".tar.bz2"})) {
    return ArchiveKind::kTar;
  }
  if (ends_in(lower, {".zip", ".npz"})) return ArchiveKind::kZip;
  if (ends_in(lower, {".gz", ".xz", ".zst", ".bz2"})) {
    return ArchiveKind::kCompressed;
  }
  return ArchiveKind::kNone;
}

}  // namespace reformer
