#include "reformer/data/file_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "reformer/base/errors.h"
#include "reformer/data/byte_file.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr size_t kSampledFiles = 64;
constexpr int64_t kSampleBytes = 1 << 16;

struct stat status_of(const std::string& path) {
  struct stat found {};
  require(stat(path.c_str(), &found) == 0, "cannot read ", path, ": ",
          std::strerror(errno));
  return found;
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

ListedFile listed(const std::string& path, const std::string& name) {
  const auto status = status_of(path);
  return {
      path, name, status.st_size,
      int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::vector<ListedFile> files_below(const std::string& folder) {
  std::vector<ListedFile> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(error)) {
      const std::string path = at->path().string();
      files.push_back(
          listed(path, fs::path(path).lexically_relative(folder).string()));
    }
  }
  require(!error, "cannot read ", folder, ": ", error.message());
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

// The file's first and last bytes.
std::string sample_of(const ListedFile& file) {
  if (file.size == 0) return "";
  const ByteFile bytes(file.path);
  const int64_t part = std::min(kSampleBytes, bytes.size());
  std::string sample(static_cast<size_t>(2 * part), '\0');
  auto* data = reinterpret_cast<uint8_t*>(sample.data());
  bytes.read(0, {data, static_cast<size_t>(part)});
  bytes.read(bytes.size() - part, {data + part, static_cast<size_t>(part)});
  return sample;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool can_be_read_twice(const std::string& path) {
  std::error_code ignored;
  return path != "-" &&
         (is_folder(path) || (fs::is_regular_file(path, ignored) &&
                              fs::file_size(path, ignored) > 0));
}

std::vector<ListedFile> files_of(const std::string& path) {
  if (is_folder(path)) return files_below(path);
  return {listed(path, fs::path(path).filename().string())};
}

Sha256Digest signature_of(const std::vector<ListedFile>& files) {
  Sha256 facts;
  const size_t step = (files.size() + kSampledFiles - 1) / kSampledFiles;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& file = files[i];
    facts.add(file.name + '\0' + std::to_string(file.size) + '\0' +
              std::to_string(file.modified) + '\0');
    if (i % step == 0) facts.add(sample_of(file));
  }
  return facts.finish();
}

}  // namespace reformer
