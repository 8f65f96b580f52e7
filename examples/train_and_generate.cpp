// Trains a small model on sequences of its own, saves it, loads it again and
// lets it go on: each token is the one before plus 3, modulo 16.
#include <ATen/ATen.h>
#include <reformer/reformer.h>

#include <cstdio>

at::Tensor sequences(int64_t batch, int64_t length) {
  const auto first = at::randint(16, {batch, 1}, at::kLong);
  return (first + 3 * at::arange(length)).remainder(16);  // [batch, length]
}

int main(int arguments, char** argument) try {
  const char* folder = arguments > 1 ? argument[1] : "plus-three";
  reformer::Model model({.layers = 2,
                         .d_model = 32,
                         .heads = 2,
                         .vocabulary = 16,
                         .length = 64,
                         .learning_rate = 3e-3});
  for (int step = 1; step <= 61; ++step) {
    const double loss = model.train_step(sequences(/*batch=*/8, /*length=*/64));
    if (step % 20 == 1) std::printf("step %d: loss %.3f nats\n", step, loss);
  }
  model.save(folder);

  const auto again = reformer::Model::load(folder);
  const auto prompt = sequences(/*batch=*/1, /*length=*/8);
  const auto tokens = again.generate(prompt, 12, {.temperature = 0});
  for (int64_t i = 0; i < tokens.size(1); ++i) {
    std::printf("%lld ", static_cast<long long>(tokens[0][i].item<int64_t>()));
  }
  std::printf("\nloss on new sequences %.3f nats\n",
              again.evaluate(sequences(/*batch=*/8, /*length=*/64)));
} catch (const reformer::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
