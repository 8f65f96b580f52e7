#include "tests/formats/image_writer.h"

#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>
#include <png.h>

namespace reformer {
namespace {

std::string png_of(int64_t width, int64_t height, uint32_t format,
                   const void* values) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<uint32_t>(width);
  png.height = static_cast<uint32_t>(height);
  png.format = format;
  std::string bytes(1 << 20, '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, values, 0,
                                 nullptr)) {
    std::abort();
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

namespace {

std::string jpeg_of(const Image& image, bool grey, bool progressive) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = grey ? 1 : 3;
  jpeg.in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  for (int64_t y = 0; y < image.height; ++y) {
    std::vector<uint8_t> row;
    for (int64_t i = 0; i < image.width * 3; i += grey ? 3 : 1) {
      row.push_back(image.rgb[size_t(y * image.width * 3 + i)]);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const std::string bytes(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return bytes;
}

}  // namespace

std::string jpeg_bytes(const Image& image, bool grey) {
  return jpeg_of(image, grey, /*progressive=*/false);
}

std::string progressive_jpeg_bytes(const Image& image, int more) {
  const std::string bytes = jpeg_of(image, /*grey=*/false, true);
  const size_t begin = bytes.find("\xff\xda");
  const size_t end = bytes.find("\xff\xc4", begin);  // the next one's tables
  std::string all = bytes.substr(0, end);
  for (int i = 0; i < more; ++i) all += bytes.substr(begin, end - begin);
  return all + bytes.substr(end);
}

std::string png_bytes(const Image& image) {
  return png_of(image.width, image.height, PNG_FORMAT_RGB, image.rgb.data());
}

std::string transparent_png_bytes(int64_t width, int64_t height,
                                  const std::string& values) {
  const bool grey = values.size() == size_t(2 * width * height);
  return png_of(width, height, grey ? PNG_FORMAT_GA : PNG_FORMAT_RGBA,
                values.data());
}

}  // namespace reformer
