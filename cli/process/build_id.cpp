#include "cli/process/build_id.h"

#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "reformer/base/hex.h"

namespace reformer::cli {
namespace {

constexpr char kOwner[] = "GNU";

// Words of notes are multiples of 4 bytes.
size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

std::string build_id_in(std::span<const uint8_t> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof(note));
    notes = notes.subspan(sizeof(note));
    const size_t name = padded(note.n_namesz);
    const size_t size = name + padded(note.n_descsz);
    if (size > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(kOwner) &&
        std::memcmp(notes.data(), kOwner, sizeof(kOwner)) == 0) {
      return hex(notes.subspan(name, note.n_descsz));
    }
    notes = notes.subspan(size);
  }
  return "";
}

// Of the first that is told, which is the program.
int take_build_id(dl_phdr_info* info, size_t /*size*/, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* notes =
        reinterpret_cast<const uint8_t*>(info->dlpi_addr + part.p_vaddr);
    auto& id = *static_cast<std::string*>(found);
    id = build_id_in({notes, part.p_memsz});
    if (!id.empty()) break;
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(take_build_id, &id);
  return id;
}

}  // namespace reformer::cli
