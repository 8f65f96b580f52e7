#include "reformer/data/jpeg.h"

// jpeglib.h needs it before.
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

[[noreturn]] void throw_fault(j_common_ptr jpeg) {
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  throw Error(std::string("JPEG: ") + text);
}

// libjpeg goes on with grey where data is missing, and only warns of it.
// Other warnings, such as bytes too many between two segments, leave the
// image whole.
void take_message(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) {
    throw_fault(jpeg);
  }
}

// A progressive JPEG is a series of scans over all of it. Programs write some
// ten; thousands of empty ones, a few bytes each, would take minutes.
void limit_scans(j_common_ptr jpeg) {
  constexpr int kMostScans = 100;
  const int scan =
      reinterpret_cast<jpeg_decompress_struct*>(jpeg)->input_scan_number;
  require(scan <= kMostScans, "JPEG: more than ", kMostScans, " scans");
}

// Exceptions pass through libjpeg's frames, which hold nothing to be destroyed:
// its memory is freed by jpeg_destroy_decompress. (Debian and Ubuntu compile it
// with unwind tables, as every x86-64 and ARM64 library has.)
class Decompression {
 public:
  Decompression() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = throw_fault;
    errors_.emit_message = take_message;
    jpeg_create_decompress(&jpeg_);
    progress_.progress_monitor = limit_scans;
    jpeg_.progress = &progress_;
  }
  ~Decompression() { jpeg_destroy_decompress(&jpeg_); }
  Decompression(const Decompression&) = delete;
  Decompression& operator=(const Decompression&) = delete;

  jpeg_decompress_struct* operator->() { return &jpeg_; }
  jpeg_decompress_struct* get() { return &jpeg_; }

 private:
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
};

bool is_cmyk(J_COLOR_SPACE space) {
  return space == JCS_CMYK || space == JCS_YCCK;
}

// As programs of print write it: 255 is no ink.
void put_cmyk_row(const std::vector<uint8_t>& cmyk, uint8_t* rgb) {
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      *rgb++ = static_cast<uint8_t>((cmyk[i + c] * cmyk[i + 3] + 127) / 255);
    }
  }
}

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes) {
  Decompression jpeg;
  jpeg_mem_src(jpeg.get(), bytes.data(), bytes.size());  // throws for none
  jpeg_read_header(jpeg.get(), TRUE);
  require_possible_size("JPEG", jpeg->image_width, jpeg->image_height,
                        bytes.size());
  const DecodingTurn turn(jpeg->image_width, jpeg->image_height);
  const int64_t pixels = int64_t{jpeg->image_width} * jpeg->image_height;
  const bool cmyk = is_cmyk(jpeg->jpeg_color_space);
  jpeg->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(jpeg.get());
  Image image{jpeg->output_width, jpeg->output_height,
              std::vector<uint8_t>(static_cast<size_t>(3 * pixels))};
  std::vector<uint8_t> inks(cmyk ? size_t(4 * image.width) : 0);
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t* row = &image.rgb[3 * size_t(image.width) * jpeg->output_scanline];
    JSAMPROW target = cmyk ? inks.data() : row;
    jpeg_read_scanlines(jpeg.get(), &target, 1);
    if (cmyk) put_cmyk_row(inks, row);
  }
  jpeg_finish_decompress(jpeg.get());
  return image;
}

}  // namespace reformer
