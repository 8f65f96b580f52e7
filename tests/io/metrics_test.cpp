#include "reformer/io/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "reformer/base/errors.h"
#include "tests/io/tensorboard_reader.h"

namespace reformer {
namespace {

namespace fs = std::filesystem;

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    std::string name = (fs::temp_directory_path() / "metrics-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~MetricsTest() override { fs::remove_all(folder_); }

  std::string lines_path() const { return folder_ + "/metrics.jsonl"; }

  std::string lines() const {
    std::ifstream file(lines_path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void set_lines(const std::string& text) const {
    std::ofstream(lines_path()) << text;
  }

  // In the order in which TensorBoard reads them.
  std::vector<std::string> event_files() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("events.out.tfevents.")) {
        paths.push_back(entry.path().string());
      }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  std::string folder_;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using MetricsWriterTest = MetricsTest;
using ReadMetricsTest = MetricsTest;
using TensorboardTest = MetricsTest;

TEST_F(MetricsWriterTest, WritesALineAStepInTheOrderGiven) {
  MetricsWriter writer(folder_, {});
  writer.write(10, {{"train/loss", 2.5}, {"rate", 1e-3}});
  EXPECT_EQ(lines(), "{\"step\":10,\"train/loss\":2.5,\"rate\":0.001}\n");
  writer.write(20, {{"train/loss", 2}});
  EXPECT_EQ(read_metrics(folder_).size(), 2);
}

TEST_F(MetricsWriterTest, KeepsEveryDigit) {
  const Scalars scalars = {{"third", 1.0 / 3},
                           {"tiny", 5e-324},
                           {"large", 1.7976931348623157e308},
                           {"minus", -0.1}};
  MetricsWriter(folder_, {}).write(3, scalars);
  const auto read = read_metrics(folder_);
  EXPECT_EQ(read.at(0).step, 3);
  EXPECT_EQ(read.at(0).scalars, scalars);
}

TEST_F(MetricsWriterTest, WritesWhatIsNotFiniteAsNull) {
  MetricsWriter(folder_, {}).write(1, {{"a", NAN}, {"b", INFINITY}, {"c", 1}});
  EXPECT_EQ(lines(), "{\"step\":1,\"a\":null,\"b\":null,\"c\":1.0}\n");
  const auto scalars = read_metrics(folder_).at(0).scalars;
  EXPECT_TRUE(std::isnan(scalars[0].second));
  EXPECT_TRUE(std::isnan(scalars[1].second));
}

TEST_F(MetricsWriterTest, DropsLaterLinesWhenTakingUpARun) {
  {
    MetricsWriter writer(folder_, {});
    for (int step = 1; step <= 5; ++step) writer.write(step, {{"x", step}});
  }
  MetricsWriter writer(folder_, {3});
  EXPECT_EQ(read_metrics(folder_).size(), 3);
  writer.write(4, {{"x", 40}});
  const auto read = read_metrics(folder_);
  ASSERT_EQ(read.size(), 4);
  EXPECT_EQ(read[3].scalars[0].second, 40);
}

TEST_F(MetricsWriterTest, DropsALineThatWasNeverFinished) {
  set_lines("{\"step\":1,\"x\":1.0}\n{\"step\":2,\"x\":");
  MetricsWriter(folder_, {5}).write(2, {{"x", 2}});
  EXPECT_EQ(lines(), "{\"step\":1,\"x\":1.0}\n{\"step\":2,\"x\":2.0}\n");
}

// What a loss of power leaves: zeros, or what was on the disk before.
TEST_F(MetricsWriterTest, CutsATailThatIsNoLineAndSaysSo) {
  const std::string good = "{\"step\":1,\"x\":1.0}\n{\"step\":2}\n";
  using namespace std::string_literals;
  for (const std::string& tail :
       {std::string(4096, '\0'), std::string(512, '\0') + "\n",
        std::string(100, '\0') + "\n" + std::string(50, '\0') + "\n\n",
        "\xff\xfe\0garbage\n{{{\n\"\n"s, "{\"step\":3,\"x\":"s, "\n"s}) {
    set_lines(good + tail);
    EXPECT_EQ(read_metrics(folder_).size(), 2u);
    MetricsWriter writer(folder_, {2});
    EXPECT_EQ(writer.cut(),
              lines_path() + ": its last " + std::to_string(tail.size()) +
                  " bytes are no line of a run, as a kill or a loss of power "
                  "leaves them, and were cut");
    EXPECT_EQ(lines(), good);
  }
  MetricsWriter again(folder_, {2});
  EXPECT_EQ(again.cut(), "");
}

TEST_F(MetricsWriterTest, LeavesAFileWithABrokenLineInTheMiddleAsItIs) {
  const std::string broken =
      "{\"step\":1}\n" + std::string(9, '\0') + "\n{\"step\":2}\n";
  set_lines(broken);
  const auto said = message_of([&] { MetricsWriter(folder_, {2}); });
  EXPECT_TRUE(said.starts_with(lines_path() + ", line 2: ")) << said;
  EXPECT_EQ(lines(), broken);
}

TEST_F(MetricsWriterTest, DropsTheEvaluationThatIsToBeDoneAgain) {
  const std::string before =
      "{\"step\":1,\"validation/loss\":1.0}\n{\"step\":2,\"x\":1.0}\n";
  const std::string evaluation = "{\"step\":2,\"validation/loss\":1.0}\n";
  for (const bool evaluated : {true, false}) {
    set_lines(before + evaluation);
    { const MetricsWriter begun(folder_, {2, evaluated}); }
    EXPECT_EQ(lines(), evaluated ? before + evaluation : before);
  }
}

TEST_F(MetricsWriterTest, LeavesNothingElseBehind) {
  set_lines("{\"step\":1}\n{\"step\":2}\n");
  MetricsWriter writer(folder_, {1});
  const auto files = std::distance(fs::directory_iterator(folder_), {});
  EXPECT_EQ(files, 2);  // metrics.jsonl, events
}

TEST_F(MetricsWriterTest, NamesTheFileThatItCannotWrite) {
  const std::string path = folder_ + "/missing";
  EXPECT_EQ(
      message_of([&] { MetricsWriter(path, {}); }),
      "cannot write " + path + "/metrics.jsonl: No such file or directory");
}

// As on a full disk: what fits is written, then an error comes.
TEST_F(MetricsWriterTest, KeepsWholeLinesWhenTheDiskIsFull) {
  MetricsWriter writer(folder_, {});
  for (int step = 1; step <= 8; ++step) writer.write(step, {{"x", 1}});
  const std::string before = lines();

  rlimit old = {};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {before.size() + 4, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = message_of([&] { writer.write(9, {{"x", 2}}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(message, "cannot write " + lines_path() + ": File too large");
  EXPECT_EQ(lines(), before);
}

TEST_F(ReadMetricsTest, NamesTheFileAndTheLineAtFault) {
  EXPECT_EQ(message_of([&] { read_metrics(folder_); }),
            "cannot read " + lines_path() + ": No such file or directory");
  for (const char* wrong :
       {"nonsense", "", "[1]", "3", "{\"x\":1}", "{\"step\":\"1\"}",
        "{\"step\":1,\"x\":\"y\"}", "{\"step\":1e30}", "{\"step\":-1}",
        "{\"step\":18446744073709551615}", "{\"step\":2,\"x\":1e400}"}) {
    set_lines("{\"step\":1}\n" + std::string(wrong) + "\n{\"step\":2}\n");
    EXPECT_EQ(message_of([&] { read_metrics(folder_); }),
              lines_path() +
                  ", line 2: an object of a step and its numbers is required; "
                  "mend or remove the line")
        << wrong;
  }
}

TEST(TensorboardReader, KnowsTheChecksum) {
  EXPECT_EQ(plain_crc32c("123456789"), 0xe3069283u);  // RFC 3720's polynomial
}

TEST_F(TensorboardTest, HoldsItsVersionAStartAndTheScalars) {
  const auto time = std::chrono::duration<double>(
      std::chrono::system_clock::now().time_since_epoch());
  MetricsWriter writer(folder_, {});
  writer.write(7, {{"train/loss", 2.3}, {"train/rate", NAN}});
  writer.write(int64_t{1} << 40, {{"train/loss", -1e-7}});

  ASSERT_EQ(event_files().size(), 1);
  const auto events = read_tensorboard(event_files()[0]);  // checks the CRCs
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_NEAR(events[0].wall_time, time.count(), 60);
  EXPECT_EQ(events[2].step, 7);
  ASSERT_EQ(events[2].scalars.size(), 2);
  EXPECT_EQ(events[2].scalars[0],
            (std::pair<std::string, float>{"train/loss", 2.3f}));
  EXPECT_TRUE(std::isnan(events[2].scalars[1].second));
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  EXPECT_EQ(events[3].scalars[0].second, -1e-7f);
}

TEST_F(TensorboardTest, VoidsLaterEventsWhenTakingUpARun) {
  MetricsWriter(folder_, {}).write(9, {{"x", 1}});
  const auto first = event_files();
  MetricsWriter(folder_, {5}).write(6, {{"x", 2}});
  const auto files = event_files();
  ASSERT_EQ(files.size(), 2);
  EXPECT_EQ(files[0], first[0]);  // read first
  const auto events = read_tensorboard(files[1]);
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[1].session_status, 1);
  EXPECT_EQ(events[1].step, 6);
  EXPECT_EQ(events[2].step, 6);
}

}  // namespace
}  // namespace reformer
