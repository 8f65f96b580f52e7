// What a feed-forward layer does to its inner elements.
#pragma once

namespace reformer::kernels {

enum class Activation {
  kNone,
  kGelu,  // by tanh
  kRelu,
  kGeluErf,
  kReluSquared,  // max(x, 0)^2
};

}  // namespace reformer::kernels
