#include "reformer/io/huggingface.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "reformer/base/input_file.h"
#include "reformer/model/language_model.h"
#include "tests/io/temporary_folder.h"

namespace reformer {
namespace {

Checkpoint some_reformer() {
  Checkpoint checkpoint;
  auto& config = checkpoint.config;
  config.task.byte_offset = 2;
  config.model.layers = 3;
  config.model.attention = "local_separate_qk,lsh_huggingface,lsh_huggingface";
  config.model.d_model = 64;
  config.model.d_ff = 96;
  config.model.heads = 3;
  config.model.d_head = 8;
  config.model.vocabulary = 258;
  config.model.activation = "gelu_erf";
  config.model.dropout = 0.25;
  config.model.norm_epsilon = 1e-12;
  config.model.local_chunk_length = 8;
  config.model.bucket_factors = {4, 6};
  config.model.positions = "axial";
  config.model.axial_shape = {5, 7};
  config.model.axial_dims = {24, 40};
  config.lsh.rounds = 2;
  config.lsh.chunk_length = 16;
  config.train.length = 35;
  const LanguageModel model(config);
  for (const auto& [name, value] : model.parameters()) {
    auto copy = value.detach().clone();
    // As an import leaves it: texts start with their token 0.
    if (name == "embedding.weight") copy[258].copy_(copy[0]);
    checkpoint.parameters.push_back({name, copy});
  }
  return checkpoint;
}

TEST(Huggingface, ExportedAndImportedIsTheSame) {
  const TemporaryFolder folder;
  const auto saved = some_reformer();
  export_huggingface(folder / "model", saved);
  const auto loaded = import_huggingface(folder / "model", {});
  ASSERT_EQ(loaded.parameters.size(), saved.parameters.size());
  for (size_t i = 0; i < saved.parameters.size(); ++i) {
    EXPECT_EQ(loaded.parameters[i].name, saved.parameters[i].name);
    EXPECT_TRUE(
        at::equal(loaded.parameters[i].value, saved.parameters[i].value))
        << saved.parameters[i].name;
  }
  const auto& model = loaded.config.model;
  EXPECT_EQ(model.bucket_factors, std::vector<int64_t>({4, 6}));
  EXPECT_EQ(model.axial_dims, std::vector<int64_t>({24, 40}));
  EXPECT_EQ(model.norm_epsilon, 1e-12);
  EXPECT_EQ(model.dropout, 0.25);
  EXPECT_EQ(model.local_chunk_length, 8);
  EXPECT_EQ(name_of(model.activation), "gelu_erf");
  EXPECT_EQ(loaded.config.lsh.rounds, 2);
  EXPECT_EQ(loaded.config.lsh.chunk_length, 16);
  EXPECT_EQ(loaded.config.task.byte_offset, 2);
  EXPECT_EQ(loaded.config.train.length, 35);
}

TEST(Huggingface, OurAttentionHasTheSameParameters) {
  const TemporaryFolder folder;
  export_huggingface(folder / "model", some_reformer());
  const auto ours =
      import_huggingface(folder / "model", {.our_attention = true});
  EXPECT_TRUE(ours.config.model.attention.contains(AttentionKind::kLsh));
  EXPECT_FALSE(
      ours.config.model.attention.contains(AttentionKind::kLshHuggingface));
  EXPECT_EQ(ours.config.lsh.n_buckets, 24);
  LanguageModel model(ours.config);
  EXPECT_EQ(model.parameters().size(), ours.parameters.size());
}

// The sentence of an import whose config.json has `from` replaced.
std::string fault_of(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  export_huggingface(folder / "model", some_reformer());
  const std::string path = folder / "model/config.json";
  std::string text = read_text(path);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(path) << text;
  try {
    import_huggingface(folder / "model", {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Huggingface, WhatIsNotKnownIsRefusedByName) {
  const auto expect = [](const char* from, const char* to,
                         const char* sentence) {
    const auto said = fault_of(from, to);
    EXPECT_NE(said.find(sentence), std::string::npos) << said;
  };
  expect("\"reformer\"", "\"bert\"", "model_type: reformer is required");
  expect("\"is_decoder\": true", "\"is_decoder\": false", "is_decoder: true");
  expect("\"lsh_num_chunks_after\": 0", "\"lsh_num_chunks_after\": 1",
         "lsh_num_chunks_after: 0 is required");
  expect("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"swish\"",
         "hidden_act: relu, gelu or gelu_new is required, got swish");
  expect("\"hidden_size\": 64", "\"hidden_size\": \"wide\"", "hidden_size");
  expect("\"feed_forward_size\": 96", "\"feed_forward_size\": 97",
         "feed_forward.dense.dense.weight: sizes [97, 64] are required");
  expect("\"lsh\",", "\"full\",", "attn_layers: local and lsh are known");
  expect("\"lsh\",", "", "reformer.encoder.layers.2");
}

TEST(Huggingface, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  const std::string path = folder / "model";
  const auto fault = [&] {
    try {
      import_huggingface(path, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(fault().find("no such folder"), std::string::npos);
  export_huggingface(path, some_reformer());
  EXPECT_THROW(export_huggingface(path, some_reformer()), Error);
  fs::rename(path + "/model.safetensors", path + "/pytorch_model.bin");
  EXPECT_NE(fault().find("python3 -m reformer.convert"), std::string::npos)
      << fault();
  fs::remove(path + "/config.json");
  EXPECT_NE(fault().find("has no config.json"), std::string::npos) << fault();
}

TEST(Huggingface, WeightsThatAreNotFiniteAreNamed) {
  const TemporaryFolder folder;
  auto checkpoint = some_reformer();
  for (auto& [name, value] : checkpoint.parameters) {
    if (name == "head.bias") value[0] = std::nan("");
  }
  export_huggingface(folder / "model", checkpoint);
  try {
    import_huggingface(folder / "model", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lm_head.bias holds NaN"),
              std::string::npos)
        << error.what();
  }
}

TEST(Huggingface, WhatTheirsHaveNotIsNotExported) {
  const TemporaryFolder folder;
  auto checkpoint = some_reformer();
  checkpoint.config.model.positions = "rotary";
  EXPECT_THROW(export_huggingface(folder / "rotary", checkpoint), Error);
  checkpoint = some_reformer();
  checkpoint.config.task.byte_offset = 0;
  EXPECT_THROW(export_huggingface(folder / "bytes", checkpoint), Error);
  checkpoint = some_reformer();
  checkpoint.config.model.activation = "relu_squared";
  EXPECT_THROW(export_huggingface(folder / "squares", checkpoint), Error);
  checkpoint = some_reformer();
  checkpoint.config.model.short_convolution = 4;
  EXPECT_THROW(export_huggingface(folder / "filters", checkpoint), Error);
}

}  // namespace
}  // namespace reformer
