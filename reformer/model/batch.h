// What a model is trained and evaluated on at a time.
#pragma once

#include <ATen/core/Tensor.h>

namespace reformer {

struct Batch {
  at::Tensor tokens;  // [batch, length] int64 in [0, vocabulary): the sequence
  at::Tensor loss_mask;  // [batch, length] bool: which tokens the loss counts
  // [batch, length] int64: how far back a token that counts is found, where
  // the task knows it of every one.
  at::Tensor distances = {};
  at::Tensor source = {};       // [batch, source length] int64, of translation
  at::Tensor source_mask = {};  // [batch, source length] bool: real tokens
};

}  // namespace reformer
