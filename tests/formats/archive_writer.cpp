#include "tests/formats/archive_writer.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <stdexcept>

namespace reformer {
namespace {

struct Free {
  void operator()(archive* handle) const { archive_write_free(handle); }
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

void require_good(archive* handle, int result) {
  if (result < ARCHIVE_WARN) {
    throw std::runtime_error(archive_error_string(handle));
  }
}

void choose_filter(archive* handle, const std::string& name) {
  if (name.ends_with(".gz")) archive_write_add_filter_gzip(handle);
  if (name.ends_with(".xz")) archive_write_add_filter_xz(handle);
  if (name.ends_with(".zst")) archive_write_add_filter_zstd(handle);
  if (name.ends_with(".bz2")) archive_write_add_filter_bzip2(handle);
}

void add(archive* handle, const std::string& name, const std::string& content) {
  const std::unique_ptr<archive_entry, Free> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(),
                             name.ends_with("/") ? AE_IFDIR : AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), static_cast<int64_t>(content.size()));
  require_good(handle, archive_write_header(handle, entry.get()));
  archive_write_data(handle, content.data(), content.size());
}

std::string written(archive* handle, const Members& members) {
  std::string bytes(1 << 23, '\0');
  size_t used = 0;
  require_good(handle, archive_write_open_memory(handle, bytes.data(),
                                                 bytes.size(), &used));
  for (const auto& [name, content] : members) add(handle, name, content);
  require_good(handle, archive_write_close(handle));
  bytes.resize(used);
  return bytes;
}

}  // namespace

std::string archive_bytes(const std::string& name, const Members& members) {
  const std::unique_ptr<archive, Free> handle(archive_write_new());
  if (name.ends_with(".zip") || name.ends_with(".npz")) {
    archive_write_set_format_zip(handle.get());
    if (name.ends_with(".npz")) {
      archive_write_zip_set_compression_store(handle.get());
    }
  } else {
    archive_write_set_format_gnutar(handle.get());
    choose_filter(handle.get(), name);
  }
  return written(handle.get(), members);
}

std::string compressed_bytes(const std::string& name,
                             const std::string& content) {
  const std::unique_ptr<archive, Free> handle(archive_write_new());
  archive_write_set_format_raw(handle.get());
  choose_filter(handle.get(), name);
  return written(handle.get(), {{"data", content}});
}

}  // namespace reformer
