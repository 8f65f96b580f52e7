#include "reformer/distributed/ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "reformer/base/errors.h"

namespace reformer {
namespace {

using Variables = std::map<std::string, std::string>;

Ranks ranks_of(const Variables& variables) {
  return reformer::ranks_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_of(const Variables& variables) {
  try {
    ranks_of(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Ranks, APlainStartIsOneRankThatNobodyLaunched) {
  for (const Variables& variables :
       {Variables{}, Variables{{"MASTER_ADDR", "left"}, {"LOCAL_RANK", "3"}},
        // Of a batch script of Slurm, which is no step.
        Variables{{"SLURM_NTASKS", "4"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_JOB_ID", "7"}},
        // Of a shell in a step (srun --pty bash).
        Variables{{"SLURM_STEP_NUM_TASKS", "1"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_STEP_NODELIST", "gpu7"},
                  {"SLURM_STEP_ID", "4294967290"},
                  {"SLURM_JOB_ID", "7"}}}) {
    const auto ranks = ranks_of(variables);
    EXPECT_FALSE(ranks.launched());
    EXPECT_EQ(ranks.rank, 0);
    EXPECT_EQ(ranks.size, 1);
  }
}

TEST(Ranks, TorchrunTellsItAll) {
  Variables variables{{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "there"},
                      {"MASTER_PORT", "1234"},
                      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                      {"TORCHELASTIC_RESTART_COUNT", "2"}};
  auto ranks = ranks_of(variables);
  EXPECT_TRUE(ranks.launched());
  EXPECT_EQ(ranks.rank, 5);
  EXPECT_EQ(ranks.size, 8);
  EXPECT_EQ(ranks.local_rank, 1);
  EXPECT_EQ(ranks.local_size, 4);
  EXPECT_EQ(ranks.host, "there");
  EXPECT_EQ(ranks.port, 1234);
  EXPECT_EQ(ranks.attempt, "2");
  EXPECT_FALSE(ranks.agent_store);
  variables.insert_or_assign("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_TRUE(ranks_of(variables).agent_store);
}

TEST(Ranks, MpirunOnOneMachineNeedsNoAddress) {
  Variables variables{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const auto ranks = ranks_of(variables);
  EXPECT_EQ(ranks.rank, 1);
  EXPECT_EQ(ranks.size, 2);
  EXPECT_EQ(ranks.local_rank, 1);
  EXPECT_EQ(ranks.host, "127.0.0.1");
  EXPECT_EQ(ranks.port, 29500);
  variables.insert_or_assign("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  EXPECT_NE(error_of(variables).find("MASTER_ADDR: the machine of rank 0"),
            std::string::npos);
  variables.insert_or_assign("MASTER_ADDR", "there");
  EXPECT_EQ(ranks_of(variables).host, "there");
}

TEST(Ranks, SrunNamesItsMachines) {
  Variables variables{{"SLURM_PROCID", "3"},
                      {"SLURM_STEP_NUM_TASKS", "6"},
                      {"SLURM_NTASKS", "99"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                      {"SLURM_STEP_NODELIST", "gpu[007-009],other"},
                      {"SLURM_JOB_ID", "123456"}};
  const auto ranks = ranks_of(variables);
  EXPECT_EQ(ranks.rank, 3);
  EXPECT_EQ(ranks.size, 6);
  EXPECT_EQ(ranks.local_rank, 1);
  EXPECT_EQ(ranks.local_size, 2);
  EXPECT_EQ(ranks.host, "gpu007");
  EXPECT_EQ(ranks.port, 23456);
  // Steps of a job may run at a time.
  variables.insert_or_assign("SLURM_STEP_ID", "2");
  EXPECT_EQ(ranks_of(variables).port, 23658);
}

TEST(Ranks, TheFirstHostOfAListIsFound) {
  EXPECT_EQ(first_host("one"), "one");
  EXPECT_EQ(first_host("one,two[1-3]"), "one");
  EXPECT_EQ(first_host("n[3,5-7]"), "n3");
  EXPECT_EQ(first_host("n[12]"), "n12");
}

TEST(Ranks, ImpossibleOnesAreErrorsThatNameTheVariable) {
  EXPECT_EQ(error_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "RANK: a whole number from 0 to 1 is required of the launcher, got "
            "'2'");
  EXPECT_EQ(error_of({{"RANK", "0"}}),
            "WORLD_SIZE: a whole number from 1 to 1048576 is required of the "
            "launcher, got ''");
  EXPECT_NE(error_of({{"RANK", "0x"}, {"WORLD_SIZE", "2"}}).find("got '0x'"),
            std::string::npos);
  EXPECT_NE(error_of({{"RANK", "0"},
                      {"WORLD_SIZE", "1"},
                      {"MASTER_ADDR", "a"},
                      {"MASTER_PORT", "65536"}})
                .find("MASTER_PORT"),
            std::string::npos);
}

TEST(Share, SharesFollowOneAnotherAndDifferByOneAtMost) {
  for (int64_t count : {0, 1, 5, 7, 1000}) {
    for (int64_t size : {1, 2, 3, 8}) {
      int64_t end = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const auto share = share_of(count, rank, size);
        EXPECT_EQ(share.begin, end);
        EXPECT_GE(share.count(), count / size);
        EXPECT_LE(share.count(), count / size + 1);
        end = share.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

}  // namespace
}  // namespace reformer
