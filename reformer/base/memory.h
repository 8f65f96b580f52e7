// Working memory of the kernels, and the count of what is in use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reformer {

// Bytes in use and their peak since reset_peak(), over everything that reports
// here: the kernels' scratch memory always, LibTorch's tensors while an
// device/memory_meter is installed.
namespace memory {
void add(int64_t bytes);  // negative when memory is released
int64_t in_use();
int64_t peak();
void reset_peak();
}  // namespace memory

// Memory for kernels, 64-byte aligned (a cache line, an AVX-512 vector), not
// initialised, counted above. Throws std::bad_alloc.
void* allocate_scratch(std::size_t bytes);
void free_scratch(void* data, std::size_t bytes);

// `count` elements of T in such memory.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(allocate_scratch(bytes_))) {}
  ~Scratch() { free_scratch(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  std::size_t bytes_;
  T* data_;
};

}  // namespace reformer
