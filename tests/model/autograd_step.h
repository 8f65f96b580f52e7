// The gradients of a step by automatic differentiation of the layers' forward
// functions: what backward passes that are written out are held to.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "reformer/model/encoder_decoder.h"
#include "reformer/model/language_model.h"

namespace reformer {

// Of scale * (sum of losses), as LanguageModel::train's: of all parameters, in
// their order. Keeps every activation.
std::vector<at::Tensor> autograd_gradients(const LanguageModel& model,
                                           const at::Tensor& tokens,
                                           const Pass& pass, double scale);

// Likewise of an encoder-decoder, as EncoderDecoder::add_gradients' with
// config.train.label_smoothing; by the authors' equations.
std::vector<at::Tensor> autograd_gradients(const EncoderDecoder& model,
                                           const Batch& batch, const Pass& pass,
                                           double scale);

}  // namespace reformer
