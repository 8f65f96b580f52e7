#include "reformer/model/attention_layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "reformer/model/language_model.h"
#include "tests/support/duplication_config.h"

namespace reformer {
namespace {

// 4 heads, of which the first two offer the value that followed, and are the
// only ones that hash where `hashed` says so.
LanguageModel model_of(const std::string& attention, HashedHeads hashed) {
  auto config = duplication_config(23, 32, 40, 64);
  config.model.attention = attention;
  config.model.layers = 1;
  config.model.heads = 4;
  config.model.d_head = 8;
  config.lsh.hashed_heads = hashed;
  config.model.successor_fraction = 0.5;
  config.lsh.local_window = 5;
  config.lsh.chunk_length = 7;
  config.lsh.n_buckets = 6;
  return LanguageModel(config);
}

at::Tensor random_heads(uint64_t seed) {
  return at::randn({2, 4, 33, 8}, at::detail::createCPUGenerator(seed));
}

TEST(AttentionLayer, HeadsAttendOneByOneAsTogether) {
  const at::NoGradGuard no_grad;
  for (const std::string attention :
       {"lsh", "lsh some", "local", "full", "full_shared_qk"}) {
    const auto model = attention == "lsh some"
                           ? model_of("lsh", HashedHeads::kSuccessor)
                           : model_of(attention, HashedHeads::kAll);
    const auto& layer = model.stack().blocks()[0].attention;
    const bool own_keys = has_own_keys(layer.kind());
    const Projected all{random_heads(1),
                        own_keys ? random_heads(2) : at::Tensor(),
                        random_heads(3)};
    at::Tensor buckets;
    layer.hash(all, {}, buckets);
    const auto together = layer.attend(all, buckets);
    for (int64_t n : {1, 3}) {
      for (int64_t at = 0; at < 4; at += n) {
        const int64_t some = std::min<int64_t>(n, 4 - at);
        const auto of = [&](const at::Tensor& x) {
          return x.defined() ? x.narrow(1, at, some) : x;
        };
        const auto part = layer.attend({of(all.q), of(all.k), of(all.v)},
                                       buckets, {}, layer.lsh(), at);
        EXPECT_TRUE(part.equal(together.narrow(1, at, some)))
            << attention << ", head " << at << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace reformer
