#include "reformer/data/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "reformer/core/errors.h"
#include "reformer/core/xxhash64.h"

namespace reformer {

namespace fs = std::filesystem;

namespace {

constexpr char kRemedy[] = "; task.cache names another folder";

// Held by the process that decodes. The system lets go of it at any end.
class Lock {
 public:
  explicit Lock(const fs::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
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

fs::path cache_path(const CacheRequest& request, const fs::path& folder) {
  const fs::path source = fs::absolute(request.source).lexically_normal();
  const fs::path name = source.has_filename() ? source.filename()
                                              : source.parent_path().filename();
  return folder /
         (name.string() + "-" +
          xxhash64_hex(source.string() + '\0' + request.form) + ".cache");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  require(!error, "cannot make the folder ", folder.string(), ": ",
          error.message(), kRemedy);
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

// Says what to do about a full disk.
template <class Call>
void with_remedy(const Call& write) {
  try {
    write();
  } catch (const Error& error) {
    throw Error(error.what() + std::string(kRemedy));
  }
}

void write_cache(const fs::path& path, uint64_t signature,
                 Collection& collection, const Decode& decode,
                 DecodeObserver& observer) {
  CacheWriter writer(path.string(), signature);
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
  Collection collection(request.source);
  const uint64_t signature = signature_of(collection.files());
  const fs::path folder =
      request.folder.empty() ? default_cache_folder() : request.folder;
  const fs::path path = cache_path(request, folder);
  if (auto cache = CacheFile::open(path.string(), signature)) return cache;

  make_folder(folder);
  Lock lock(path.string() + ".lock");
  if (!lock.try_take()) {
    observer.warned("waiting for another process, which decodes " +
                    request.source);
    lock.take();
  }
  if (auto cache = CacheFile::open(path.string(), signature)) return cache;
  remove_unfinished(path);
  write_cache(path, signature, collection, decode, observer);
  auto cache = CacheFile::open(path.string(), signature);
  require(cache != nullptr, path.string(),
          ": damaged while it was written; is the disk in order?");
  return cache;
}

}  // namespace reformer
