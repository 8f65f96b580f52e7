// From the streams to the loss, a cross entropy, a part of the positions at a
// time (paper Sec. 3: chunking also of the output layer).
#pragma once

#include <ATen/core/Tensor.h>

#include "reformer/config/config.h"
#include "reformer/model/parameter_store.h"
#include "reformer/model/streams.h"
#include "reformer/ops/layer_norm.h"

namespace reformer {

// Sums over the tokens that count.
struct LossSums {
  double loss = 0;  // cross entropy, in nats
  int64_t count = 0;
  int64_t correct = 0;  // the most probable token is the right one

  LossSums& operator+=(const LossSums& more) {
    loss += more.loss;
    count += more.count;
    correct += more.correct;
    return *this;
  }
  double mean_loss() const { return count == 0 ? 0 : loss / double(count); }
  double accuracy() const {
    return count == 0 ? 0 : double(correct) / double(count);
  }
};

// Positions of `batch` sequences that are taken at once; where `sharing` ranks
// share them, each takes so many times fewer.
int64_t loss_chunk(const ModelConfig& model, int64_t batch,
                   at::DeviceType device = at::kCPU, int64_t sharing = 1);

// As the device counts them, [3] float64: loss, count, correct.
LossSums read(const at::Tensor& sums);

class LanguageHead {
 public:
  // What each row of logits should predict.
  struct Wanted {
    at::Tensor tokens;  // [rows, 1] int64
    at::Tensor counts;  // [rows, 1] bool
  };

  // `table`, where it is defined: its first `vocabulary` rows are the matrix of
  // the projection, [at least vocabulary, joined width], in place of one of the
  // head's own.
  LanguageHead(const Config& config, Join join, ParameterStore& store,
               const at::Tensor& table = {});

  // Logits [batch, length, vocabulary] of LN(joined(Y1, Y2)) W + b.
  at::Tensor logits(const Streams& y) const;

  // The most probable tokens after the one position that y has of each row:
  // ops/top_tokens' of logits. On a CPU a part of the vocabulary at a time,
  // which stays in the caches.
  at::Tensor top_tokens(const Streams& y, int64_t k, int64_t besides) const;

  //   y        the stack's output
  //   tokens  [batch, length] int64: what each position should predict
  //   loss_mask  [batch, length] bool: which count
  //   returns  [3] float64 on the device, for `read`: nothing waits for it here
  at::Tensor loss(const Streams& y, const at::Tensor& tokens,
                  const at::Tensor& loss_mask) const;

  // The loss of every token, [batch, length] on the device.
  at::Tensor losses(const Streams& y, const at::Tensor& tokens) const;

  // As `loss`, and adds the gradients of scale * (sum of losses) to the
  // parameters'; returns those of y in `d_y`. Logits of more than a part of the
  // positions never exist. With train.label_smoothing = e the gradients are
  // those of the cross entropy with (1 - e) of what is wanted and e /
  // vocabulary of every token; the losses that are returned do not know of it.
  at::Tensor backward(const Streams& y, const at::Tensor& tokens,
                      const at::Tensor& loss_mask, double scale,
                      Streams& d_y) const;

 private:
  at::Tensor weight() const;  // [vocabulary, width]
  void add_projection_gradient(const at::Tensor& x,
                               const at::Tensor& d_logits) const;
  at::Tensor loss_gradient(const at::Tensor& log_p, const Wanted& wanted,
                           double scale) const;
  int64_t chunk(int64_t batch) const;
  at::Tensor part_backward(const Streams& part, const Wanted& wanted,
                           double scale, const at::Tensor& sums) const;

  ModelConfig model_;
  Placement placement_;
  Join join_;
  double label_smoothing_;
  bool shared_;        // weight_ is somebody else's, too
  NormWeights norm_;   // of [width]: joined_width
  at::Tensor weight_;  // [vocabulary, width]; shared: at least so many rows
  at::Tensor bias_;    // [vocabulary]
};

}  // namespace reformer
