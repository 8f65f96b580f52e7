// LSH attention as an operation of LibTorch: how near it comes to exact
// attention with more and more hash rounds, and its gradient.
#include <ATen/ATen.h>
#include <reformer/reformer.h>

#include <cstdio>

int main() {
  // [batch, heads, length, d_head]; 3 makes some keys stand out from the rest.
  const auto qk = 3 * at::randn({1, 2, 4096, 64});
  const auto v = at::randn({1, 2, 4096, 64});
  const auto exact = reformer::full_shared_qk_attention(qk, v);
  for (const int64_t rounds : {1, 2, 4, 8}) {
    const auto near = reformer::lsh_attention(qk, v, {.rounds = rounds});
    const auto error = ((near - exact).norm() / exact.norm()).item<double>();
    std::printf("%lld rounds: relative error %.3f\n",
                static_cast<long long>(rounds), error);
  }

  const auto learned = qk.clone().set_requires_grad(true);
  reformer::lsh_attention(learned, v).square().mean().backward();
  std::printf("norm of the gradient %.2e\n",
              learned.grad().norm().item<double>());
}
