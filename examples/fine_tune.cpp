// Goes on from a model that is there: of `reformer train`, or of `reformer
// import`, which reads Hugging Face's Reformers.
#include <ATen/ATen.h>
#include <reformer/reformer.h>

#include <algorithm>
#include <cstdio>

// What it shall learn: a token again and again.
at::Tensor sequences(const reformer::Model& model) {
  const auto length = std::min<int64_t>(model.length(), 64);
  const auto token = at::randint(3, model.vocabulary(), {8, 1}, at::kLong);
  return token.expand({8, length}).contiguous();  // [batch, length]
}

int main(int arguments, char** argument) try {
  if (arguments != 3) {
    std::fputs("usage: fine_tune FROM TO\n", stderr);
    return 2;
  }
  auto model = reformer::Model::load(argument[1]);
  std::printf("before: loss %.3f nats\n", model.evaluate(sequences(model)));
  for (int step = 0; step < 20; ++step) model.train_step(sequences(model));
  std::printf("after: loss %.3f nats\n", model.evaluate(sequences(model)));
  model.save(argument[2]);
} catch (const reformer::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
