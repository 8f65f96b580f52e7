// Archives and compressed files, opened without unpacking them.
#pragma once

#include <functional>
#include <string>

#include "reformer/data/byte_stream.h"

namespace reformer {

// What a file is, by its name: .tar, .zip and .npz hold members; .gz, .xz, .zst
// and .bz2 compress one file, or a tar (.tar.gz, .tgz, ...).
enum class ArchiveKind { kNone, kTar, kZip, kCompressed };
ArchiveKind archive_kind(const std::string& name);

using VisitMember =
    std::function<void(const std::string& name, ByteStream& member)>;

// Calls visit(name, member) for each ordinary file of an archive, in its order.
// The one file of a compressed one has its name without the ending. What
// `visit` leaves unread is skipped. `path` says what `archive` is, by its
// ending and in messages. Nothing is written to disk: names, such as "../x",
// are only names. Throws Error for what is no such archive, is damaged (as far
// as the format has checksums: of a tar's members it has none) or cut short,
// becomes a thousand times as long (archive_faults.h); and where the library
// was built without libarchive.
void for_each_in_archive(const std::string& path, ByteStream& archive,
                         const VisitMember& visit);

}  // namespace reformer
