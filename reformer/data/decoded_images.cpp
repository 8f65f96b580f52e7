#include "reformer/data/decoded_images.h"

#include <cmath>
#include <filesystem>
#include <vector>

#include "reformer/base/errors.h"
#include "reformer/base/parallel.h"
#include "reformer/data/image.h"
#include "reformer/data/npy.h"

namespace reformer {
namespace {

// A member as it was read, and what became of it.
struct ReadImage {
  std::string name;
  std::string bytes;
  std::vector<uint8_t> rgb;  // of the square
  std::string fault;         // empty: none
};

// Reads members one after the other, decodes many at a time.
class ImageDecoder {
 public:
  ImageDecoder(const std::string& source, int64_t image_size,
               const AppendPayload& append)
      : source_(source), image_size_(image_size), append_(append) {}

  void take(const std::string& name, ByteStream& member) {
    if (is_image_name(name)) {
      take_image(name, member);
    } else if (name.ends_with(".npy")) {
      take_array(name, member);
    }
  }

  // Decodes what was read.
  void flush() {
    parallel_tasks(static_cast<int64_t>(read_.size()),
                   [&](int64_t i) { decode(read_[static_cast<size_t>(i)]); });
    for (const auto& image : read_) {
      if (image.fault.empty()) {
        put(image.name, image.rgb);
      } else {
        skip(image);
      }
    }
    read_.clear();
    read_bytes_ = 0;
  }

  // After the last member.
  Decoded finish(DecodeObserver& observer) {
    flush();
    const auto kept = static_cast<int64_t>(decoded_.labels.size());
    const int64_t all = kept + decoded_.skipped;
    require(all > 0, source_,
            ": no image in it; PNG or JPEG files, or .npz files of "
            "ImageNet64, are required");
    require(100 * decoded_.skipped <= all, source_, ": ", decoded_.skipped,
            " of ", all, " images cannot be read, more than 1%; the first is ",
            first_fault_);
    if (decoded_.skipped > 0) {
      observer.warned(source_ + ": " + std::to_string(decoded_.skipped) +
                      " of " + std::to_string(all) +
                      " images cannot be read and are left out; the first is " +
                      first_fault_);
    }
    return decoded_;
  }

 private:
  static constexpr size_t kImages = 256;  // decoded at once, at most
  static constexpr size_t kReadBytes = 64 << 20;
  static constexpr size_t kDecodedBytes = 256 << 20;
  static constexpr size_t kMostBytes = 256 << 20;  // of one image

  void take_image(const std::string& name, ByteStream& member) {
    ReadImage image{name, {}, {}, {}};
    try {
      image.bytes = read_all(member, kMostBytes);
    } catch (const Error& error) {
      image.fault = error.what();
    }
    read_bytes_ += image.bytes.size();
    read_.push_back(std::move(image));
    const size_t decoded_bytes =
        read_.size() * 3 * size_t(image_size_ * image_size_);
    if (read_.size() == kImages || read_bytes_ > kReadBytes ||
        decoded_bytes > kDecodedBytes) {
      flush();
    }
  }

  void decode(ReadImage& image) const {
    if (!image.fault.empty()) return;
    const auto* bytes = reinterpret_cast<const uint8_t*>(image.bytes.data());
    try {
      image.rgb =
          square_image(decode_image({bytes, image.bytes.size()}), image_size_)
              .rgb;
    } catch (const Error& error) {
      image.fault = error.what();
    }
  }

  void take_array(const std::string& name, ByteStream& member) {
    const auto stem = std::filesystem::path(name).stem();
    if (stem == "labels" || stem == "mean") return;
    flush();
    try {
      take_rows(name, member);
    } catch (const Error& error) {
      throw Error(source_ + ": cannot read " + name + ": " + error.what());
    }
  }

  void take_rows(const std::string& name, ByteStream& member) {
    const auto header = read_npy_header(member);
    require(header.columns <= 3 * kMostPixels, "rows of at most ",
            3 * kMostPixels, " bytes are required, got ", header.columns);
    const auto side = std::llround(std::sqrt(double(header.columns) / 3));
    require(side > 0 && 3 * side * side == header.columns,
            "rows of 3 side^2 bytes are required, got ", header.columns);
    for (int64_t row = 0; row < header.rows; ++row) {
      const auto planes = read_claimed(member, size_t(header.columns));
      require(planes.size() == size_t(header.columns), "it ends in row ", row,
              " of ", header.rows);
      put(name, square_image(interleaved(planes, side), image_size_).rgb);
    }
    // An archive compares its checksum at a member's end.
    uint8_t more;
    require(member.read({&more, 1}) == 0, "it goes on after its ", header.rows,
            " rows");
  }

  static Image interleaved(const std::string& planes, int64_t side) {
    const auto pixels = static_cast<size_t>(side * side);
    Image image{side, side, std::vector<uint8_t>(planes.size())};
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        image.rgb[3 * i + c] = static_cast<uint8_t>(planes[c * pixels + i]);
      }
    }
    return image;
  }

  void put(const std::string& name, const std::vector<uint8_t>& rgb) {
    decoded_.labels += static_cast<char>(split_named(name));
    append_(rgb);
  }

  void skip(const ReadImage& image) {
    if (decoded_.skipped++ > 0) return;
    first_fault_ = image.name + " (" + image.fault + ")";
  }

  std::string source_;
  int64_t image_size_;
  const AppendPayload& append_;
  std::vector<ReadImage> read_;
  size_t read_bytes_ = 0;
  Decoded decoded_;
  std::string first_fault_;
};

}  // namespace

std::shared_ptr<const CacheFile> open_images(const std::string& path,
                                             int64_t image_size,
                                             const std::string& cache_folder,
                                             DecodeObserver& observer) {
  const auto decode = [&](Collection& collection, const AppendPayload& append) {
    ImageDecoder decoder(path, image_size, append);
    collection.for_each([&](const std::string& name, ByteStream& member) {
      decoder.take(name, member);
    });
    return decoder.finish(observer);
  };
  return cached({cache_folder, path, "images of " + std::to_string(image_size)},
                decode, observer);
}

}  // namespace reformer
