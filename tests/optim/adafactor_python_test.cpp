// Adafactor beside the one in Python's `transformers`: an optional check, run
// by adafactor_python_test.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reformer/io/safetensors.h"
#include "reformer/optim/optimizer.h"

namespace reformer {
namespace {

// FOLDER/in.safetensors holds parameters "w.0", "w.1", ... and, for the steps
// s = 1, 2, ..., their gradients "g.s.0", ...; the parameters after all steps
// go to FOLDER/out.safetensors.
TEST(AdafactorPython, TakesTheStepsThatPythonTakes) {
  const char* folder = std::getenv("REFORMER_ADAFACTOR_FOLDER");
  if (!folder) GTEST_SKIP() << "run by adafactor_python_test.py";
  const auto file = read_safetensors(std::string(folder) + "/in.safetensors");
  const auto tensor = [&](const std::string& name) {
    for (const auto& [known, value] : file.tensors) {
      if (known == name) return value;
    }
    return at::Tensor();
  };
  std::vector<Parameter> parameters;
  for (int i = 0; tensor("w." + std::to_string(i)).defined(); ++i) {
    const std::string name = "w." + std::to_string(i);
    parameters.push_back({name, tensor(name), {}});
  }
  TrainConfig config;
  config.optimizer = "adafactor";
  const auto optimizer = make_optimizer(config, parameters);
  for (int step = 1; tensor("g." + std::to_string(step) + ".0").defined();
       ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].gradient() =
          tensor("g." + std::to_string(step) + "." + std::to_string(i));
    }
    optimizer->step(parameters, /*learning_rate=*/0.01);
  }
  std::vector<NamedTensor> stepped;
  for (const auto& parameter : parameters) {
    stepped.push_back({parameter.name, parameter.value});
  }
  write_safetensors(std::string(folder) + "/out.safetensors", stepped, {});
}

}  // namespace
}  // namespace reformer
