#include "cli/serve/shared_translations.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "reformer/base/errors.h"

namespace reformer::cli {
namespace {

using Lines = std::vector<std::string>;
using Texts = std::vector<SharedTranslations::Text>;

class SharedTranslationsTest : public testing::Test {
 protected:
  // What is asked for while the engine has other things to do, in order.
  std::vector<std::future<Texts>> ask_at_once(const std::vector<Lines>& all) {
    std::latch begun(1);
    std::latch go(1);
    auto busy = std::async(std::launch::async, [&] {
      engine_.run([&] {
        begun.count_down();
        go.wait();
      });
    });
    begun.wait();
    std::vector<std::future<Texts>> asked;
    for (const auto& lines : all) {
      asked.push_back(std::async(
          std::launch::async, [&] { return translations_.translate(lines); }));
      while (translations_.waiting() < asked.size()) std::this_thread::yield();
    }
    go.count_down();
    busy.get();
    for (const auto& one : asked) one.wait();
    return asked;
  }

  // Declared before the engine, whose thread fills it.
  std::vector<std::size_t> passes_;  // lines of each
  Engine engine_{nullptr, nullptr, {1, 8, 1}};
  SharedTranslations translations_{[this](const Lines& lines) {
                                     passes_.push_back(lines.size());
                                     Texts texts;
                                     for (const auto& line : lines) {
                                       require(line != "broken",
                                               "this cannot be translated");
                                       texts.push_back({"T" + line, 1});
                                     }
                                     return texts;
                                   },
                                   engine_};
};

TEST_F(SharedTranslationsTest, WhatWaitsIsTranslatedTogether) {
  auto asked = ask_at_once({{"a", "b"}, {"c"}, {}, {"d", "e", "f"}});
  EXPECT_EQ(asked[0].get(), (Texts{{"Ta", 1}, {"Tb", 1}}));
  EXPECT_EQ(asked[1].get(), (Texts{{"Tc", 1}}));
  EXPECT_EQ(asked[2].get(), (Texts{}));
  EXPECT_EQ(asked[3].get(), (Texts{{"Td", 1}, {"Te", 1}, {"Tf", 1}}));
  EXPECT_EQ(passes_, (std::vector<std::size_t>{6}));
}

TEST_F(SharedTranslationsTest, ManyLinesGoInSeveralPasses) {
  const Lines many(SharedTranslations::kMostLines - 1, "x");
  const Lines more(SharedTranslations::kMostLines + 1, "y");
  auto asked = ask_at_once({many, {"a"}, {"b"}, more});
  for (auto& one : asked) EXPECT_FALSE(one.get().empty());
  EXPECT_EQ(passes_, (std::vector<std::size_t>{64, 1, 65}));
}

TEST_F(SharedTranslationsTest, AFaultIsThatOfAllWhoShareIt) {
  auto asked = ask_at_once({{"a"}, {"broken"}});
  EXPECT_THROW(asked[0].get(), Error);
  EXPECT_THROW(asked[1].get(), Error);
  EXPECT_EQ(translations_.translate({"a"}), (Texts{{"Ta", 1}}));
}

}  // namespace
}  // namespace reformer::cli
