// Hugging Face's Reformers as checkpoints of ours, and back.
//
// Their folder: config.json, model.safetensors and, where text is pieces,
// spiece.model. Their model does not shift its input: with the start token's
// row set to their row 0, the padding's, our logits for t0..tn are theirs for
// [0, t0..tn-1], which is how the published ones were trained.
#pragma once

#include <string>

#include "reformer/io/checkpoint.h"

namespace reformer {

struct ImportOptions {
  bool our_attention = false;  // with_our_attention
  int64_t length = 4096;       // train.length, at most their longest input
};

// What their config.json says, before it is known whether text is pieces.
// Throws Error that names the field.
Config huggingface_config(const std::string& json,
                          const ImportOptions& options);

// Throws Error that names the file and what is missing, of another size, or
// not known here (an encoder, other chunks than one before, tied embeddings).
Checkpoint import_huggingface(const std::string& folder,
                              const ImportOptions& options);

// The same model with our LSH attention (lsh) in place of lsh_huggingface: the
// same rounds, chunks and parameters; windows end with buckets and at the
// query, a pair counts once, and hashes are ours. Local layers stay as they
// are.
Config with_our_attention(Config config);

// Writes a folder that `transformers` loads as ReformerModelWithLMHead, whole
// or not at all. Throws Error where it exists, or the model has what theirs
// have not. Importing it gives the same parameters, and for widths that are
// powers of 4 the same bits: theirs have sqrt(d_model) within the embedding.
void export_huggingface(const std::string& directory,
                        const Checkpoint& checkpoint);

}  // namespace reformer
