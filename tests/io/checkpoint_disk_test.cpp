#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "reformer/io/checkpoint.h"
#include "tests/io/checkpoint_fixture.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class CheckpointDisk : public CheckpointTest {};

TEST_F(CheckpointDisk, AFileThatCannotGrowLeavesWhatWasThere) {
  save(1, /*best=*/true);
  {
    const FileSizeLimit limit(4096);
    Checkpoint large = tiny_checkpoint(2, 1);
    large.optimizer.push_back({"large", at::zeros({5000})});
    const auto message = error_of([&] { save_checkpoint(run_, large, true); });
    EXPECT_NE(message.find("optimizer.safetensors: cannot write: "
                           "File too large"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(names_in(run_), (Names{"best", "step-00000001"}));
  EXPECT_EQ(best(), 1);
}

// A disk of 256 KiB.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

TEST_F(CheckpointDisk, AFullDiskLeavesWhatWasThere) {
  constexpr int64_t kDisk = 256 << 10;
  const SmallDisk disk(run_);
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small disk";
  save(1, /*best=*/true);
  int failed = 0;
  int64_t step = 1;
  for (int64_t ballast = kDisk - (60 << 10); ballast < kDisk; ballast += 4096) {
    put_bytes(folder_ / "ballast", std::string(ballast, '.'));
    const auto message = error_of([&] { save(step + 1, true, 1); });
    if (message.empty()) ++step;
    if (!message.empty()) {
      ++failed;
      EXPECT_NE(message.find("No space left on device"), std::string::npos)
          << message;
    }
    EXPECT_EQ(names_in(run_).size(), 3u);  // ballast, best and one step
    EXPECT_EQ(latest(), step);
    EXPECT_EQ(best(), step);
  }
  EXPECT_GT(step, 1);
  EXPECT_GT(failed, 2);
}

TEST_F(CheckpointDisk, APlaceWithoutPermissionIsNamed) {
  fs::permissions(run_, fs::perms(0555));
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root writes anywhere";
  const auto saving = error_of([&] { save(1); });
  const auto creating =
      error_of([&] { create_run_directory(folder_ / "inner", {}); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  for (const auto& message : {saving, creating}) {
    EXPECT_TRUE(message.starts_with(run_)) << message;
    EXPECT_TRUE(message.ends_with("Permission denied")) << message;
  }
}

TEST_F(CheckpointDisk, AMissingRunIsNotMade) {
  run_ = folder_ / "missing";
  EXPECT_EQ(error_of([&] { save(1); }), run_ + ": No such file or directory");
}

}  // namespace
}  // namespace reformer
