#include "reformer/model/sequence_exchange.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "reformer/distributed/communicator.h"
#include "reformer/distributed/ranks.h"

namespace reformer {

int64_t sharing_ranks(const Communicator* ranks) {
  return ranks == nullptr ? 1 : ranks->size();
}

SequenceExchange::SequenceExchange(Communicator* ranks, int64_t heads)
    : ranks_(ranks), heads_(heads), own_(heads) {
  if (ranks_ == nullptr) return;
  const Share share = share_of(heads, ranks_->rank(), ranks_->size());
  first_ = share.begin;
  own_ = share.count();
}

int64_t SequenceExchange::own_of_first(int64_t count) const {
  return std::clamp<int64_t>(count - first_, 0, own_);
}

// At most two tensors of x's size at a time: x and what is sent, then that and
// what is received.
at::Tensor SequenceExchange::by_heads(at::Tensor x) const {
  if (!shares()) return x;
  const int64_t ranks = ranks_->size();
  const int64_t batch = x.size(0);
  const int64_t positions = x.size(1);
  const int64_t d_head = x.size(2) / heads_;
  const auto sent = at::empty({x.numel()}, x.options());
  std::vector<int64_t> counts;
  int64_t at = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Share share = share_of(heads_, rank, ranks);
    const auto part = x.narrow(2, share.begin * d_head, share.count() * d_head);
    sent.narrow(0, at, part.numel()).view(part.sizes()).copy_(part);
    counts.push_back(part.numel());
    at += part.numel();
  }
  const auto options = x.options();
  x.reset();
  const int64_t width = own_ * d_head;
  const auto received = at::empty({ranks, batch, positions, width}, options);
  ranks_
      ->exchange(received, sent,
                 std::vector<int64_t>(size_t(ranks), batch * positions * width),
                 std::move(counts))
      .wait();
  if (batch == 1) return received.view({1, ranks * positions, width});
  return received.transpose(0, 1).reshape({batch, ranks * positions, width});
}

at::Tensor SequenceExchange::by_positions(at::Tensor x) const {
  if (!shares()) return x;
  const int64_t ranks = ranks_->size();
  const int64_t batch = x.size(0);
  const int64_t positions = x.size(1) / ranks;
  const int64_t width = x.size(2);
  const int64_t d_head = width / own_;
  auto sent =
      x.reshape({batch, ranks, positions, width}).transpose(0, 1).contiguous();
  x.reset();
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    counts.push_back(batch * positions * share_of(heads_, rank, ranks).count() *
                     d_head);
  }
  auto received =
      at::empty({batch * positions * heads_ * d_head}, sent.options());
  ranks_
      ->exchange(received, sent, counts,
                 std::vector<int64_t>(size_t(ranks), batch * positions * width))
      .wait();
  sent.reset();
  std::vector<at::Tensor> parts;
  for (const auto& part : received.split_with_sizes(counts)) {
    parts.push_back(part.view({batch, positions, -1}));
  }
  return at::cat(parts, 2);
}

}  // namespace reformer
