// Memory whose reading or writing past its end ends the program: what lies
// there belongs to no page.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace reformer::emulation {

// Numbers in it are NaN, and -1 as integers, until they are written.
class GuardedMemory {
 public:
  // From a multiple of `alignment` on, and so the end is less than that from
  // the guard.
  GuardedMemory(std::size_t bytes, std::size_t alignment) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    const std::size_t pages = (rounded + page - 1) / page * page;
    mapped_ = pages + 2 * page;  // one before, one after
    void* map =
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<unsigned char*>(map);
    if (mprotect(map_ + page, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(map_, mapped_);
      throw std::bad_alloc();
    }
    data_ = map_ + page + pages - rounded;
    std::memset(map_ + page, 0xff, pages);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(map_, mapped_); }

  unsigned char* data() const { return data_; }

 private:
  unsigned char* map_;
  std::size_t mapped_;
  unsigned char* data_;
};

}  // namespace reformer::emulation
