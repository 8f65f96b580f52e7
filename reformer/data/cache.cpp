#include "reformer/data/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "reformer/base/errors.h"
#include "reformer/base/hex.h"
#include "reformer/data/private_files.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr char kRemedy[] = "; task.cache names another folder";

// Held by the process that decodes. The system lets go of it at any end.
class Lock {
 public:
  explicit Lock(const fs::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                     kPrivateFile)) {
    require(file_ >= 0, "cannot write ", path.string(), ": ",
            std::strerror(errno), kRemedy);
  }
  ~Lock() { ::close(file_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool try_take() { return ::flock(file_, LOCK_EX | LOCK_NB) == 0; }
  void take() {
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  int file_;
};

fs::path source_of(const CacheRequest& request) {
  return fs::absolute(request.source).lexically_normal();
}

fs::path cache_path(const CacheRequest& request, const fs::path& folder) {
  // For people who look into the folder; the digits tell them apart.
  constexpr size_t kMostOfName = 64;
  constexpr size_t kDigits = 32;
  const fs::path source = source_of(request);
  const fs::path name = source.has_filename() ? source.filename()
                                              : source.parent_path().filename();
  Sha256 place;
  place.add(source.string() + '\0' + request.form);
  return folder / (name.string().substr(0, kMostOfName) + "-" +
                   hex(place.finish()).substr(0, kDigits) + ".cache");
}

CacheKey key_of(const CacheRequest& request,
                const std::vector<ListedFile>& files) {
  const auto signature = signature_of(files);
  Sha256 key;
  key.add(source_of(request).string() + '\0' + request.form + '\0');
  key.add(signature.data(), signature.size());
  return key.finish();
}

// Says what to do about a full disk, or a folder that others may write.
template <class Call>
void with_remedy(const Call& write) {
  try {
    write();
  } catch (const Error& error) {
    throw Error(error.what() + std::string(kRemedy));
  }
}

// What killed processes left. Nobody writes it now: the lock is ours.
void remove_unfinished(const fs::path& path) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    const std::string name = entry.path().filename().string();
    if (is_unfinished(entry.path()) &&
        name.find(path.filename().string()) != std::string::npos) {
      fs::remove(entry.path(), ignored);
    }
  }
}

void write_cache(const fs::path& path, const CacheKey& key,
                 Collection& collection, const Decode& decode,
                 DecodeObserver& observer) {
  CacheWriter writer(path.string(), key);
  const auto tell = [&] {
    observer.decoding(collection.path(), collection.done(), collection.size());
  };
  tell();
  const Decoded decoded =
      decode(collection, [&](std::span<const uint8_t> payload) {
        with_remedy([&] { writer.append(payload); });
        tell();
      });
  require(writer.size() > 0, collection.path(),
          " holds no data: ", collection.files().size(),
          " files, and nothing in them");
  with_remedy([&] { writer.finish(decoded.labels, decoded.skipped); });
}

// Before they were private, folders were made with the permissions of others.
fs::path folder_of(const CacheRequest& request) {
  const bool chosen = !request.folder.empty();
  const fs::path folder = chosen ? request.folder : default_cache_folder();
  if (!chosen) ::chmod(folder.c_str(), kPrivateFolder);
  with_remedy([&] { make_private_folder(folder); });
  return folder;
}

}  // namespace

std::string default_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string caches = variable("XDG_CACHE_HOME");
  if (!caches.empty()) return caches + "/reformer";
  const std::string home = variable("HOME");
  require(!home.empty(),
          "task.cache: a folder is required where neither XDG_CACHE_HOME nor "
          "HOME is set");
  return home + "/.cache/reformer";
}

std::shared_ptr<const CacheFile> cached(const CacheRequest& request,
                                        const Decode& decode,
                                        DecodeObserver& observer) {
  Collection collection = request.files.empty()
                              ? Collection(request.source)
                              : Collection(request.source, request.files);
  const CacheKey key = key_of(request, collection.files());
  const fs::path folder = folder_of(request);
  const fs::path path = cache_path(request, folder);
  if (auto cache = CacheFile::open(path.string(), key)) return cache;

  Lock lock(path.string() + ".lock");
  if (!lock.try_take()) {
    observer.warned("waiting for another process, which decodes " +
                    request.source);
    lock.take();
  }
  if (auto cache = CacheFile::open(path.string(), key)) return cache;
  remove_unfinished(path);
  write_cache(path, key, collection, decode, observer);
  auto cache = CacheFile::open(path.string(), key);
  require(cache != nullptr, path.string(),
          ": damaged while it was written; is the disk in order?");
  return cache;
}

}  // namespace reformer
