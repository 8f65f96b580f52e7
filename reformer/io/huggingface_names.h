// What files and parameters of Hugging Face's Reformers are called, beside
// ours.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reformer/config/config.h"
#include "reformer/model/parameter.h"

namespace reformer::huggingface {

inline constexpr const char* kWeights = "model.safetensors";
inline constexpr const char* kPieces = "spiece.model";

// The one parameter that is not the same there: it lacks the start token's row,
// and has a factor of sqrt(d_model).
inline constexpr const char* kTheirEmbedding =
    "reformer.embeddings.word_embeddings.weight";
inline constexpr const char* kOurEmbedding = "embedding.weight";

// Their name of each of our parameters but the embedding.
std::map<std::string, std::string> their_names(const ModelConfig& model);

// The sizes that a parameter of ours has there: an axis of positions has one of
// 1 for every other axis.
std::vector<int64_t> their_sizes(const ModelConfig& model,
                                 const NamedTensor& ours);

}  // namespace reformer::huggingface
