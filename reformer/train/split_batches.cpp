#include "reformer/train/split_batches.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace reformer {
namespace {

// The `i`-th of `used` numbers spread over 0 to all - 1.
int64_t spread_place(int64_t i, int64_t used, int64_t all) {
  return i * (all / used) + i * (all % used) / used;
}

}  // namespace

void for_each_batch(const SequenceModel& model, const Task& task,
                    const EvaluatedSplit& of, bool spread,
                    const BatchBody& body) {
  const int64_t all = task.evaluation_batches(of.split);
  const int64_t used = of.batches > 0 ? std::min(of.batches, all) : all;
  const Pass pass{static_cast<uint64_t>(model.config().train.seed), /*step=*/0,
                  /*training=*/false, of.rounds};
  const int64_t groups = of.world == nullptr ? 1 : of.world->data_size();
  const int64_t group = of.world == nullptr ? 0 : of.world->data_rank();
  for (int64_t turn = 0; turn < used; turn += groups) {
    if (of.progress) of.progress(turn, used);
    const int64_t i = turn + group;
    if (i >= used) continue;
    body(task.evaluation_batch(of.split,
                               spread ? spread_place(i, used, all) : i),
         pass);
  }
}

at::Tensor sum_of_ranks(const at::Tensor& own, World* world) {
  if (world == nullptr) return own;
  const auto all = world->control().gathered(own);  // [ranks, ...]
  auto sum = all[0].clone();
  for (int64_t rank = 1; rank < all.size(0); ++rank) sum += all[rank];
  return sum;
}

Share own_positions(const SequenceModel& model, int64_t length) {
  const auto* ranks = model.placement().sequence;
  return ranks == nullptr ? Share{0, length}
                          : share_of(length, ranks->rank(), ranks->size());
}

at::Tensor own_losses(const LanguageModel& model, const at::Tensor& tokens,
                      const Pass& pass) {
  const Share own = own_positions(model, tokens.size(1));
  auto losses = at::zeros(tokens.sizes(), at::kDouble);
  losses.narrow(1, own.begin, own.count()).copy_(model.losses(tokens, pass));
  return losses;
}

}  // namespace reformer
