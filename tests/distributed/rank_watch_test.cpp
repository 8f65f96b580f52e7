#include "reformer/distributed/rank_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace reformer {
namespace {

constexpr double kTimeout = 1;  // seconds, within which faults are found

// A rank of `size` whose main thread says that it is where `progress` is.
class WatchedRank {
 public:
  WatchedRank(const RankStore& store, int64_t rank, int64_t size,
              RankProgress progress = {}, double timeout = kTimeout) {
    Ranks ranks;
    ranks.rank = rank;
    ranks.size = size;
    ranks.host = "here";
    watch_ = std::make_unique<RankWatch>(
        store, ranks, timeout, [progress] { return progress; },
        [this](RankWatch&, const RankFault& fault) {
          found_.set_value(fault);
        });
  }

  RankWatch& watch() { return *watch_; }

  // Waits for it as long as the slowest machine may take.
  RankFault fault() {
    auto coming = found_.get_future();
    if (coming.wait_for(std::chrono::minutes(2)) != std::future_status::ready) {
      return {-1, "none was found"};
    }
    return coming.get();
  }

 private:
  std::promise<RankFault> found_;
  std::unique_ptr<RankWatch> watch_;  // before what it tells goes
};

TEST(RankWatch, ARankThatGivesUpIsHeardByAll) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 3), second(store, 1, 3), third(store, 2, 3);
  const auto fault = third.watch().give_up("the disk is full");
  EXPECT_EQ(fault.rank, 2);
  for (auto* rank : {&first, &second}) {
    const auto heard = rank->fault();
    EXPECT_EQ(heard.rank, 2);
    EXPECT_EQ(heard.sentence, "the disk is full");
    EXPECT_TRUE(heard.told);
  }
}

TEST(RankWatch, TheFirstWordIsEverybodys) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 2), second(store, 1, 2);
  first.watch().give_up("one");
  const auto fault = second.watch().give_up("two");
  EXPECT_EQ(fault.rank, 0);
  EXPECT_EQ(fault.sentence, "one");
}

// Such as one that was told to stop.
TEST(RankWatch, ARankThatIsAskedToEndSaysWithWhichStatus) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 2), second(store, 1, 2);
  second.watch().give_up("", 143);
  const auto heard = first.fault();
  EXPECT_EQ(heard.status, 143);
  EXPECT_EQ(heard.sentence, "");
  EXPECT_TRUE(heard.told);
}

TEST(RankWatch, WhoServesTheStoreStaysUntilAllHaveHeard) {
  const auto store = RankStore::within_process();
  constexpr double kLong = 120;  // it stays for 15 s at most
  WatchedRank first(store, 0, 3, {}, kLong), second(store, 1, 3, {}, kLong),
      third(store, 2, 3, {}, kLong);
  first.watch().give_up("the disk is full");
  first.watch().let_others_hear();
  EXPECT_EQ(store.add("heard", 0), 3);
}

TEST(RankWatch, WhoServesTheStoreDoesNotStayForEver) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 3), second(store, 1, 3);
  first.watch().lost_contact("closed");
  first.watch().let_others_hear();  // returns, though the third never hears
  EXPECT_LT(store.add("heard", 0), 3);
}

TEST(RankWatch, ARankWithoutSignsOfLifeIsLost) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 2);
  { WatchedRank second(store, 1, 2); }
  const auto fault = first.fault();
  EXPECT_EQ(fault.rank, 1);
  EXPECT_FALSE(fault.told);
  EXPECT_EQ(fault.sentence.find("rank 1 was lost: it has given no sign of"),
            0U);
}

TEST(RankWatch, WhereContactWasLostTheOneWithoutSignsOfLifeIsNamed) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 3), second(store, 1, 3);
  { WatchedRank third(store, 2, 3); }
  const auto fault = first.watch().lost_contact("connection closed");
  EXPECT_EQ(fault.rank, 2);
  EXPECT_EQ(fault.sentence.find("rank 2 was lost: "), 0U);
}

TEST(RankWatch, TheRankThatIsBehindHangs) {
  const auto store = RankStore::within_process();
  // The second computes, so it says, and the others wait.
  WatchedRank first(store, 0, 3, {8, 5 * kTimeout}),
      second(store, 1, 3, {7, 0}), third(store, 2, 3, {8, 5 * kTimeout});
  for (auto* rank : {&first, &second, &third}) {
    const auto fault = rank->fault();
    EXPECT_EQ(fault.rank, 1);
    EXPECT_EQ(fault.sentence.find("rank 1 hangs: rank "), 0U) << fault.sentence;
  }
}

// As where its GPU is stuck and its host has asked for all that the others
// have.
TEST(RankWatch, OfRanksThatHaveBegunAsMuchTheOneThatDoesNotWaitHangs) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 3, {8, 5 * kTimeout}),
      second(store, 1, 3, {8, 0}), third(store, 2, 3, {8, 5 * kTimeout});
  const auto fault = first.fault();
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.sentence.find("rank 1 hangs: rank "), 0U) << fault.sentence;
}

TEST(RankWatch, RanksOfWhichAllWaitWaitForEachOther) {
  const auto store = RankStore::within_process();
  WatchedRank first(store, 0, 2, {8, 5 * kTimeout}),
      second(store, 1, 2, {8, 5 * kTimeout});
  const auto fault = first.fault();
  EXPECT_EQ(fault.sentence.find("the ranks wait for each other: rank "), 0U)
      << fault.sentence;
}

TEST(RankWatch, ABusyRankMayTakeItsTime) {
  const auto store = RankStore::within_process();
  WatchedRank second(store, 1, 2, {7, 0});
  second.watch().set_busy(true);
  // Its word that it is busy has come before anybody waits.
  while (store.find("beat/1").value_or("").find(" 1") == std::string::npos) {
    std::this_thread::yield();
  }
  WatchedRank first(store, 0, 2, {8, 100 * kTimeout});
  std::this_thread::sleep_for(std::chrono::duration<double>(kTimeout));
  EXPECT_FALSE(store.find("fault"));
  second.watch().set_busy(false);
  EXPECT_EQ(first.fault().rank, 1);
}

}  // namespace
}  // namespace reformer
