// A small GPT-like model of your own with LSH attention in it, trained by
// LibTorch's autograd: each token is the one before plus 3, modulo 16.
#include <ATen/ATen.h>
#include <reformer/reformer.h>

#include <cmath>
#include <cstdio>

at::Tensor matrix(int64_t in, int64_t out) {
  return (at::randn({in, out}) / std::sqrt(in)).set_requires_grad(true);
}

at::Tensor heads(const at::Tensor& x) {  // [batch, heads, length, 16]
  return x.unflatten(2, {2, 16}).transpose(1, 2);
}

int main() {
  const auto embedding = matrix(16, 32), qk = matrix(32, 32);
  const auto v = matrix(32, 32), up = matrix(32, 128), down = matrix(128, 16);
  for (uint64_t step = 0; step <= 100; ++step) {
    const auto first = at::randint(16, {8, 1}, at::kLong);
    const auto text = (first + 3 * at::arange(65)).remainder(16);
    auto x = at::embedding(embedding, text.slice(1, 0, 64));
    x = x + reformer::lsh_attention(heads(x.matmul(qk)), heads(x.matmul(v)),
                                    {.seed = step})
                .transpose(1, 2)
                .flatten(2);  // [batch, length, 32]
    const auto logits = at::gelu(x.matmul(up)).matmul(down);
    const auto loss = at::cross_entropy_loss(logits.flatten(0, 1),
                                             text.slice(1, 1).flatten());
    loss.backward();
    for (const auto& matrix : {embedding, qk, v, up, down}) {
      matrix.data().sub_(matrix.grad(), 0.5);
      matrix.grad().zero_();
    }
    if (step % 50 == 0) std::printf("loss %.3f nats\n", loss.item<double>());
  }
}
