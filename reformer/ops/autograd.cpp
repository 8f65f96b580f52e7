#include "reformer/ops/autograd.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

namespace reformer {

at::Tensor leaf(const at::Tensor& x) { return x.detach().requires_grad_(); }

void backward_from(at::Tensor output, const at::Tensor& gradient) {
  const auto edge = torch::autograd::impl::gradient_edge(output);
  output.reset();
  torch::autograd::Engine::get_default_engine().execute(
      {edge}, {gradient}, /*keep_graph=*/false, /*create_graph=*/false,
      /*accumulate_grad=*/true);
}

}  // namespace reformer
