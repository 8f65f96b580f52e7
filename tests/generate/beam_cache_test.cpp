#include "reformer/generate/beam_cache.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include "tests/generate/beam_cache_checks.h"

namespace reformer {
namespace {

using namespace decoding;

void expect_exact(const Config& config, const std::string& name) {
  const LanguageModel model(config, at::kDouble);
  EXPECT_LT(largest_difference(model, 70), 1e-9) << name;
}

TEST(BeamCache, HypothesesAreWhatTheirWholeTextsWouldBe) {
  for (const char* kind : {"full", "full_shared_qk", "local", "lsh"}) {
    expect_exact(small_config(kind), kind);
  }
}

TEST(BeamCache, LshHypothesesForAnyRoundsAndLocalWindow) {
  struct Case {
    int64_t rounds;
    int64_t local_window;
  };
  for (const auto& [rounds, local_window] : {Case{1, 0}, {3, 5}, {2, 100}}) {
    auto config = small_config("lsh");
    config.lsh.rounds = rounds;
    config.lsh.local_window = local_window;
    expect_exact(config, "rounds " + std::to_string(rounds));
  }
}

TEST(BeamCache, SuccessorValuesAndRotaryPositions) {
  for (const char* kind : {"full_shared_qk", "local", "lsh"}) {
    auto config = small_config(kind);
    config.model.successor_fraction = 0.5;
    config.model.positions = "rotary";
    expect_exact(config, kind);
  }
}

TEST(BeamCache, HeadsThatDoNotHash) {
  auto config = small_config("lsh");
  config.model.successor_fraction = 0.5;
  config.lsh.local_window = 5;
  config.lsh.hashed_heads = HashedHeads::kSuccessor;
  expect_exact(config, "a local round for all heads");
  config.lsh.local_heads = LocalHeads::kOther;
  expect_exact(config, "for those alone that do not hash");
}

TEST(BeamCache, InFloat32ToRounding) {
  for (const char* kind : {"full", "local"}) {
    const LanguageModel model(small_config(kind));
    EXPECT_LT(largest_difference(model, 70), 2e-5) << kind;
  }
}

// Also for heads that fill no vector.
TEST(BeamCache, SourcesAreAttendedToByTheRowsOfTheirSentence) {
  for (const int64_t d : {8, 24, 64}) {
    const auto k = at::randn({3, 2, 50, d}, at::kDouble);
    const auto v = at::randn({3, 2, 50, d}, at::kDouble);
    const std::vector<int32_t> sentences = {0, 0, 2, 2, 2, 1};
    const std::vector<int32_t> lengths = {17, 17, 50, 50, 50, 1};
    const auto q = at::randn({6, 2, 1, d}, at::kDouble) * 3;
    const BeamSources sources{at::tensor(at::ArrayRef<int32_t>(sentences)),
                              at::tensor(at::ArrayRef<int32_t>(lengths)), 50};
    for (const auto type : {at::kDouble, at::kFloat}) {
      // As a projection leaves them: [sentences, length, heads, d_head].
      const auto projected = [&](const at::Tensor& x) {
        return x.to(type).transpose(1, 2).contiguous().transpose(1, 2);
      };
      const auto found =
          attend_source(q.to(type), {{}, projected(k), projected(v)}, sources);
      for (int64_t row = 0; row < 6; ++row) {
        const auto keys = k[sentences[row]].narrow(1, 0, lengths[row]);
        const auto values = v[sentences[row]].narrow(1, 0, lengths[row]);
        const auto scores =
            q[row].matmul(keys.transpose(1, 2)) / std::sqrt(double(d));
        const auto expected = at::softmax(scores, -1).matmul(values);
        EXPECT_LT(difference(found[row].to(at::kDouble), expected),
                  type == at::kDouble ? 1e-12 : 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace reformer
