// data/decoded_text and data/decoded_images: archives within archives, images
// and arrays, into a cache and out of it.
#include <filesystem>

#include "reformer/data/decoded_images.h"
#include "reformer/data/decoded_text.h"
#include "tests/data/npy_array.h"
#include "tests/formats/image_writer.h"
#include "tests/fuzz/archive_names.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

constexpr int64_t kSize = 2;  // of an image

std::vector<std::string> seeds() {
  auto seeds = archive_seeds();
  const std::string png = png_bytes({2, 1, {1, 2, 3, 4, 5, 6}});
  const std::string array = npy_array(2, 12, std::string(24, 'x'));
  seeds.push_back(seed_of(0, {{"train/a.png", png}, {"valid/b.png", png}}));
  seeds.push_back(seed_of(1, {{"data.npy", array}, {"labels.npy", "x"}}));
  seeds.push_back(seed_of(2, {{"a.png", png}, {"b.npy", array}}));
  seeds.push_back(seed_of(
      2, {{"inner.zip", archive_bytes("inner.zip", {{"a.png", png}})}}));
  seeds.push_back(seed_of(
      0, {{"inner.tar.gz", archive_bytes("inner.tar.gz", {{"b", "c"}})}}));
  return seeds;
}

void read_whole(const Bytes& bytes) {
  law(bytes.size() > 0, "what is opened holds something");
  std::vector<uint8_t> part(
      static_cast<size_t>(std::min<int64_t>(bytes.size(), 1 << 16)));
  bytes.read(0, part);
  bytes.read(bytes.size() - std::ssize(part), part);
}

// Caches are of the same name each time, and of another signature or not.
void remove_caches(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::remove(entry.path());
  }
}

void execute(const std::string& input) {
  if (input.size() < 2) return;
  const auto choice = static_cast<uint8_t>(input[0]);
  const std::string path =
      put_file(scratch_folder("data_set") + "/" +
                   kArchiveNames[choice % kArchiveNames.size()],
               input.substr(1));
  const std::string caches = scratch_folder("data_set") + "/caches";
  std::filesystem::create_directory(caches);
  remove_caches(caches);
  DecodeObserver observer;
  if (choice >= 128) return read_whole(*open_text(path, caches, observer));
  const auto images = open_images(path, kSize, caches, observer);
  read_whole(*images);
  law(images->size() == std::ssize(images->labels()) * kSize * kSize * 3,
      "every image has its size and a label");
}

const Registered registered({"data_set", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
