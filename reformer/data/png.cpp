#include "reformer/data/png.h"

#include <png.h>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"

namespace reformer {
namespace {

// libpng's simplified interface: no jumps, and it converts every kind of PNG.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  png_image* operator->() { return &image_; }
  png_image* get() { return &image_; }

  // A warning is no fault.
  void require_good(int result) {
    require(result != 0 && (image_.warning_or_error & PNG_IMAGE_ERROR) == 0,
            "PNG: ", image_.message);
  }

 private:
  png_image image_{};
};

size_t big_endian(std::span<const uint8_t> bytes) {
  size_t value = 0;
  for (const uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

// libpng takes memory for a chunk before it looks whether the chunk is there: 2
// GiB for a file of 56 bytes. A chunk is a length, a kind, its bytes and a sum.
void require_chunks_within(std::span<const uint8_t> bytes) {
  constexpr size_t kSignature = 8;
  constexpr size_t kBefore = 8;
  constexpr size_t kAround = 12;
  constexpr size_t kIend = 0x49454e44;
  size_t kind = 0;
  for (size_t at = kSignature; kind != kIend && at + kBefore <= bytes.size();) {
    const size_t length = big_endian(bytes.subspan(at, 4));
    const size_t rest = bytes.size() - at;
    const size_t left = rest > kAround ? rest - kAround : 0;
    require(length <= left, "PNG: a part of it claims ", length,
            " bytes, of which there are ", left);
    kind = big_endian(bytes.subspan(at + 4, 4));
    at += kAround + length;
  }
}

}  // namespace

Image decode_png(std::span<const uint8_t> bytes) {
  require_chunks_within(bytes);
  PngImage png;
  png.require_good(
      png_image_begin_read_from_memory(png.get(), bytes.data(), bytes.size()));
  require_possible_size("PNG", png->width, png->height, bytes.size());
  const DecodingTurn turn(png->width, png->height);
  const int64_t pixels = int64_t{png->width} * png->height;
  png->format = PNG_FORMAT_RGB;
  Image image{png->width, png->height,
              std::vector<uint8_t>(static_cast<size_t>(3 * pixels))};
  const png_color black{};
  png.require_good(png_image_finish_read(png.get(), &black, image.rgb.data(),
                                         /*row_stride=*/0,
                                         /*colormap=*/nullptr));
  return image;
}

void write_png(const std::string& path, const Image& image) {
  PngImage png;
  png->width = static_cast<png_uint_32>(image.width);
  png->height = static_cast<png_uint_32>(image.height);
  png->format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const auto write = [&](void* memory) {
    png.require_good(png_image_write_to_memory(
        png.get(), memory, &size, /*convert_to_8_bit=*/0, image.rgb.data(),
        /*row_stride=*/0, /*colormap=*/nullptr));
  };
  write(nullptr);  // asks for the size
  std::string bytes(size, '\0');
  write(bytes.data());
  write_file_atomically(path, bytes.substr(0, size));
}

}  // namespace reformer
