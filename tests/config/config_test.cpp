#include "reformer/config/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reformer/config/config_json.h"
#include "tests/config/config_support.h"

namespace reformer {
namespace {

TEST(SetConfigValue, TakesValuesAsOnTheCommandLine) {
  Config config;
  for (const char* assignment :
       {"model.layers=12", "train.learning_rate=1e-4", "lsh.causal=false",
        "task.data=a=b.txt", "lsh.window=chunk", "model.axial_shape=64,64,3",
        "train.seed=-1"}) {
    set_config_value(config, assignment);
  }
  EXPECT_EQ(config.model.layers, 12);
  EXPECT_EQ(config.train.learning_rate, 1e-4);
  EXPECT_FALSE(config.lsh.causal);
  EXPECT_EQ(config.task.data, "a=b.txt");
  EXPECT_EQ(config.lsh.window, Window::kChunk);
  EXPECT_EQ(config.model.axial_shape, (std::vector<int64_t>{64, 64, 3}));
  EXPECT_EQ(config.train.seed, -1);

  set_config_value(config, "model.axial_shape=");
  set_config_value(config, "task.data=");
  EXPECT_TRUE(config.model.axial_shape.empty());
  EXPECT_TRUE(config.task.data.empty());
}

TEST(SetConfigValue, NumbersThatAreStringsElsewhereStayStrings) {
  Config config;
  set_config_value(config, "task.data=42");
  EXPECT_EQ(config.task.data, "42");
}

TEST(SetConfigValue, MistakesAreErrors) {
  const auto error = [](const std::string& assignment) {
    Config config;
    return error_of([&] { set_config_value(config, assignment); });
  };
  EXPECT_EQ(error("model.layers"), "key=value is required, got 'model.layers'");
  EXPECT_EQ(error("model.layer=3"),
            "unknown key 'model.layer', the nearest is model.layers");
  EXPECT_EQ(error("model.layers=3x"),
            "model.layers: a whole number is required, got \"3x\"");
  EXPECT_EQ(error("model.layers="),
            "model.layers: a whole number is required, got \"\"");
  EXPECT_EQ(
      error("model.axial_shape=64;64"),
      "model.axial_shape: a list of whole numbers is required, got \"64;64\"");
  expect_contains(error("model=3"), "unknown key 'model'");
  expect_contains(error("lsh.window=wide"), "one of chunk, trailing");
}

TEST(SettingsHelp, TheDefaultsItShowsCanBeSet) {
  Config config;
  const auto help = settings_help();
  for (const auto& setting : help) {
    EXPECT_FALSE(setting.meaning.empty()) << setting.key;
    set_config_value(config, setting.key + "=" + setting.value);
  }
  EXPECT_EQ(config_to_json(config), config_to_json(Config()));
  size_t count = 0;
  config.visit([&](const char*, auto&, const char*) { ++count; });
  EXPECT_EQ(help.size(), count);
}

TEST(LayerAttentions, RepeatTheListOverTheLayers) {
  ModelConfig model;
  model.layers = 5;
  model.attention = "local, lsh";
  constexpr auto kLocal = AttentionKind::kLocal;
  constexpr auto kLsh = AttentionKind::kLsh;
  EXPECT_EQ(layer_attentions(model),
            (std::vector<AttentionKind>{kLocal, kLsh, kLocal, kLsh, kLocal}));
}

TEST(HeadSize, IsAShareOfTheModelUnlessGiven) {
  ModelConfig model;
  EXPECT_EQ(head_size(model), 64);
  model.d_head = 48;
  EXPECT_EQ(head_size(model), 48);
}

}  // namespace
}  // namespace reformer
