// What model.h promises to threads. `make test-tsan` looks for races.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "reformer/model.h"
#include "tests/public/small_model.h"

namespace {

using public_tests::counting;
using public_tests::small_options;
using reformer::Model;

constexpr int kThreads = 3;

template <class Body>
void at_once(const Body& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { body(i); });
}

double last_loss(int first) {
  Model model(small_options(), "cpu");
  double loss = 0;
  for (int step = 0; step < 8; ++step) {
    loss = model.train_step(counting(first + step, 2, 48));
  }
  return loss;
}

TEST(ModelThreads, EachTrainsAModelOfItsOwn) {
  std::vector<double> losses(kThreads);
  at_once([&](int i) { losses[size_t(i)] = last_loss(i); });
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(losses[size_t(i)], last_loss(i)) << i;
  }
}

TEST(ModelThreads, OneModelServesSeveral) {
  Model trained(small_options(), "cpu");
  trained.train_step(counting(0, 2, 48));
  const Model& model = trained;
  const auto tokens = counting(0, 2, 24);
  const double loss = model.evaluate(tokens);
  const auto logits = model.logits(tokens);
  const auto made = model.generate(tokens, 20);
  std::atomic<int> different = 0;
  at_once([&](int) {
    for (int turn = 0; turn < 3; ++turn) {
      different += model.evaluate(tokens) != loss;
      different += !at::equal(model.logits(tokens), logits);
      different += !at::equal(model.generate(tokens, 20), made);
    }
  });
  EXPECT_EQ(different, 0);
}

}  // namespace
