#include "reformer/config/config_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reformer/base/note.h"
#include "tests/config/config_support.h"

namespace reformer {
namespace {

Config from(const std::string& json) {
  return config_from_json(json, "x.json");
}

// Another value of the same type, of which no two keys get the same.
void change(int64_t& setting, int n) { setting += n; }
void change(double& setting, int n) { setting = setting / 3 + n * 1e-7; }
void change(bool& setting, int) { setting = !setting; }
void change(std::string& setting, int n) {
  setting += " \"ü\\\n" + std::to_string(n);
}
template <class E>
void change(Choice<E>& setting, int) {
  setting = static_cast<E>(setting == E{0} ? 1 : 0);
}
void change(AttentionKinds& setting, int) { setting = "local,full"; }
void change(std::vector<int64_t>& setting, int n) { setting = {n, -1, n * n}; }

TEST(ConfigJson, ReadsBackEverySettingExactly) {
  Config config;
  int n = 0;
  config.visit([&](const char*, auto& x, const char*) { change(x, ++n); });
  Config read = from(config_to_json(config));

  std::vector<std::string> differing;
  config.visit([&](const std::string& key, auto& setting, const char*) {
    read.visit([&](const std::string& other, auto& same, const char*) {
      if constexpr (std::is_same_v<decltype(setting), decltype(same)>) {
        if (key == other && setting != same) differing.push_back(key);
      }
    });
  });
  EXPECT_EQ(differing, std::vector<std::string>{});
  EXPECT_NE(config_to_json(config), config_to_json(Config()));
}

TEST(ConfigJson, OldNamesOfSettingsStillLoadWithANote) {
  std::vector<std::string> notes;
  set_note_handler([&](const std::string& note) { notes.push_back(note); });
  const auto config = from(
      R"({"task": {"symbols": 9}, "train": {"graph": "off", "parameters": "host"}})");
  EXPECT_EQ(config.task.alphabet, 9);
  EXPECT_EQ(config.train.cuda_graph, GraphUse::kOff);
  EXPECT_TRUE(config.train.offload);
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "task.symbols is now called task.alphabet",
                       "train.graph is now called train.cuda_graph",
                       "train.parameters is now called train.offload"}));
  Config set;
  set_config_value(set, "train.parameters=host");
  set_config_value(set, "train.graph=on");
  set_config_value(set, "task.symbols=7");
  EXPECT_TRUE(set.train.offload);
  EXPECT_EQ(set.train.cuda_graph, GraphUse::kOn);
  EXPECT_EQ(set.task.alphabet, 7);
  EXPECT_EQ(notes.size(), 6u);
  set_note_handler({});
  expect_contains(
      error_of([&] { set_config_value(set, "train.parameters=disk"); }),
      "train.parameters: device or host is required, got");
}

TEST(ConfigJson, WritesSettingsNestedInTheOrderOfTheirLists) {
  const auto json = config_to_json(Config());
  EXPECT_EQ(json.find("{\n  \"task\": {\n    \"name\": \"text\""), 0u);
  EXPECT_LT(json.find("\"layers\": 3"), json.find("\"d_model\": 512"));
  EXPECT_LT(json.find("\"lsh\": {"), json.find("\"train\": {"));
}

TEST(ConfigJson, TextThatIsNotUtf8CannotBeWritten) {
  Config config;
  config.task.data = "\xff.txt";
  expect_contains(error_of([&] { config_to_json(config); }), "UTF-8");
}

TEST(ConfigJson, IgnoresCommentsAndTakesDottedKeys) {
  const auto config = from(R"(// line
    {"model": {"layers": 5 /* inside */}, "model.heads": 2,
     "lsh": {}, "lsh.window": "chunk", "train.learning_rate": 1,
     "model.axial_shape": [2, 3], "lsh.causal": false})");
  EXPECT_EQ(config.model.layers, 5);
  EXPECT_EQ(config.model.heads, 2);
  EXPECT_EQ(config.lsh.window, Window::kChunk);
  EXPECT_EQ(config.train.learning_rate, 1.0);
  EXPECT_EQ(config.model.axial_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(config.lsh.causal);
  EXPECT_EQ(config.model.d_model, Config().model.d_model);
}

TEST(ConfigJson, AnUnknownKeyIsAnErrorThatNamesTheNearest) {
  const auto nearest = [](const std::string& json, const std::string& key,
                          const std::string& known) {
    EXPECT_EQ(error_of([&] { from(json); }),
              "x.json: unknown key '" + key + "', the nearest is " + known);
  };
  nearest(R"({"model": {"layer": 3}})", "model.layer", "model.layers");
  nearest(R"({"modle": {"heads": 3}})", "modle.heads", "model.heads");
  nearest(R"({"lsh.n_bucket": 3})", "lsh.n_bucket", "lsh.n_buckets");
  nearest(R"({"rounds": 3})", "rounds", "lsh.rounds");
  nearest(R"({"stepts": 3})", "stepts", "train.steps");
  nearest(R"({"name": {}})", "name", "task.name");
}

TEST(ConfigJson, AnUnknownKeyOfAnyLengthIsOneShortSentence) {
  const std::string key(100000, 'k');
  const auto error = error_of([&] { from(R"({")" + key + R"(": 1})"); });
  EXPECT_LT(error.size(), 150u);
  expect_contains(error, "x.json: unknown key 'kkk");
  Config config;
  EXPECT_LT(error_of([&] { set_config_value(config, key + "=1"); }).size(),
            150u);
}

TEST(ConfigJson, AWrongTypeIsAnErrorThatNamesWhatIsRequired) {
  const auto required = [](const std::string& json, const std::string& what) {
    EXPECT_EQ(error_of([&] { from(json); }), "x.json: " + what);
  };
  required(R"({"model": {"layers": "3"}})",
           "model.layers: a whole number is required, got \"3\"");
  required(R"({"model": {"layers": 2.5}})",
           "model.layers: a whole number is required, got 2.5");
  required(R"({"train.seed": 9223372036854775808})",
           "train.seed: a whole number is required, got 9223372036854775808");
  required(R"({"train": {"clip": true}})",
           "train.clip: a number is required, got true");
  required(R"({"lsh": {"causal": 1}})",
           "lsh.causal: true or false is required, got 1");
  required(R"({"task": {"data": null}})",
           "task.data: a string is required, got null");
  required(
      R"({"model": {"axial_shape": [1, "2"]}})",
      "model.axial_shape: a list of whole numbers is required, got [1,\"2\"]");
  required(R"({"lsh": {"window": 3}})",
           "lsh.window: one of chunk, trailing is required, got 3");
  required(R"({"lsh": {"window": "wide"}})",
           "lsh.window: one of chunk, trailing is required, got 'wide'");
  required(R"({"model": 3})",
           "model: an object of settings is required, got 3");
  required(R"({"model": {"layers": {"x": 1}}})",
           "model.layers: a whole number is required, got {\"x\":1}");
  required("[]", "an object of settings is required, got []");
}

TEST(ConfigJson, MalformedJsonIsAnErrorThatNamesThePlace) {
  const auto error = error_of([] { from("{\n  \"model\": {,}}"); });
  EXPECT_EQ(error,
            "x.json: no valid JSON at line 2, column 13 at the key 'model'");
  EXPECT_EQ(error_of([] { from(""); }),
            "x.json: no valid JSON at line 1, column 1");
}

TEST(ConfigJson, NumbersThatNoDoubleHoldsAreErrorsThatNameTheKey) {
  EXPECT_EQ(error_of([] { from(R"({"train": {"learning_rate": 1e400}})"); }),
            "x.json: the number 1e400 at the key 'train.learning_rate' is too "
            "large");
  Config config;
  EXPECT_EQ(
      error_of([&] { set_config_value(config, "train.learning_rate=1e400"); }),
      "train.learning_rate: a number is required, got \"1e400\"");
}

TEST(ConfigJson, DepthsThatNoConfigHasAreErrors) {
  const std::string deep(100000, '[');
  EXPECT_EQ(error_of([&] { from(deep + std::string(100000, ']')); }),
            "x.json: nested deeper than 64 levels");
  EXPECT_EQ(error_of([&] { from("{\"model\":{\"axial_shape\":" + deep); }),
            "x.json: nested deeper than 64 levels at the key "
            "'model.axial_shape'");
  Config config;
  const std::string lists = deep + std::string(100000, ']');
  expect_contains(
      error_of([&] { set_config_value(config, "model.layers=" + lists); }),
      "model.layers: a whole number is required, got \"[[[");
}

TEST(ConfigJson, AMistakenFileIsNotShownWhole) {
  std::string list = "[0";
  for (int i = 0; i < 5000; ++i) list += ",1";
  EXPECT_LT(error_of([&] { from(list + "]"); }).size(), 200u);
}

TEST(ConfigJson, AKeyGivenTwiceIsAnError) {
  for (const char* json : {R"({"model": {"layers": 1, "layers": 2}})",
                           R"({"model": {"layers": 1}, "model": {}})",
                           R"({"model": {"layers": 1}, "model.layers": 1})"}) {
    expect_contains(error_of([&] { from(json); }), "is given twice");
  }
}

}  // namespace
}  // namespace reformer
