// io/huggingface: config.json of a model that transformers saved.
#include "reformer/io/huggingface.h"

#include "reformer/model/prediction.h"
#include "tests/fuzz/target.h"

namespace reformer::fuzz {
namespace {

std::vector<std::string> seeds() {
  const std::string begin =
      R"({"model_type": "reformer", "is_decoder": true, "hidden_size": 64, )";
  return {begin + R"("attn_layers": ["local", "lsh"], "num_buckets": [4, 8],
        "axial_pos_shape": [16, 32], "axial_pos_embds_dim": [24, 40],
        "attention_head_size": 16, "num_attention_heads": 2, "num_hashes": 3,
        "lsh_attn_chunk_length": 16, "local_attn_chunk_length": 8,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "vocab_size": 258})",
          begin + R"("attn_layers": ["lsh"], "num_buckets": null,
        "axial_pos_embds": false, "max_position_embeddings": 4096})",
          begin + R"("attn_layers": ["local"], "num_buckets": 64,
        "lsh_num_chunks_before": 1, "tie_word_embeddings": false})"};
}

void execute(const std::string& input) {
  const Config config = huggingface_config(input, {});
  check(config);
  law(config.train.length >= 1, "a model takes inputs");
  law(count_parameters(config).total() > 0, "a model has parameters");
  law(predict_memory(config).peak.total() > 0, "a model takes memory");
  const Config ours = with_our_attention(config);
  check(ours);
  law(count_parameters(ours).total() == count_parameters(config).total(),
      "our attention has the same parameters");
}

const Registered registered({"huggingface", seeds, execute});

}  // namespace
}  // namespace reformer::fuzz
