#include "reformer/model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "reformer/base/errors.h"
#include "reformer/config/config_json.h"
#include "reformer/device/device.h"
#include "reformer/generate/completion.h"
#include "reformer/io/checkpoint.h"
#include "reformer/model/memory_limits.h"
#include "reformer/train/evaluation.h"
#include "reformer/train/learner.h"
#include "reformer/train/save_run.h"

namespace reformer {
namespace {

Config config_of(const ModelOptions& options) {
  Config config;
  config.task.name = options.bytes ? TaskKind::kText : TaskKind::kNone;
  config.model.layers = options.layers;
  config.model.d_model = options.d_model;
  config.model.d_ff = options.d_ff != 0 ? options.d_ff : 4 * options.d_model;
  config.model.heads = options.heads;
  config.model.vocabulary = options.vocabulary;
  config.model.attention = options.attention;
  config.train.length = options.length;
  config.train.learning_rate = options.learning_rate;
  config.train.seed = options.seed;
  for (const auto& setting : options.settings) {
    set_config_value(config, setting);
  }
  check(config);
  return config;
}

// What a pass is told that is no training step.
Pass evaluation_pass(const Config& config) {
  return {static_cast<uint64_t>(config.train.seed), /*step=*/0,
          /*training=*/false, /*rounds=*/0};
}

void require_language_model(const Config& config) {
  require(config.model.encoder_layers == 0,
          "model.encoder_layers: 0 is required, this is for language models; "
          "got ",
          config.model.encoder_layers);
}

}  // namespace

struct Model::Impl {
  Config config;
  std::unique_ptr<Learner> learner;       // kTraining: has the model
  std::unique_ptr<LanguageModel> loaded;  // kInference
  int64_t steps = 0;
  std::string tokenizer;  // Checkpoint::tokenizer, which save keeps

  const LanguageModel& model() const {
    return learner ? learner->language_model() : *loaded;
  }

  Learner& trained(std::string_view by) const {
    require(learner != nullptr, by,
            ": a model for training is required, this one was loaded for "
            "inference");
    return *learner;
  }

  void check_tokens(std::string_view by, const at::Tensor& tokens,
                    int64_t least_length) const {
    require(tokens.defined(), by, ": tokens are required, got none");
    require(tokens.dim() == 2 && tokens.scalar_type() == at::kLong &&
                tokens.size(0) >= 1 && tokens.size(1) >= least_length,
            by, ": tokens must be [batch, length] int64, got ",
            at::toString(tokens.scalar_type()), " ", tokens.sizes());
    const int64_t limit = model().positions().limit();
    require(tokens.size(1) <= limit, by, ": at most ", limit,
            " positions are required, this model's length, got ",
            tokens.size(1));
    if (tokens.numel() == 0) return;
    const auto least = tokens.min().item<int64_t>();
    const auto most = tokens.max().item<int64_t>();
    require(least >= 0 && most < config.model.vocabulary, by,
            ": tokens must be from 0 to ", config.model.vocabulary - 1,
            ", got ", least < 0 ? least : most);
  }

  at::Tensor checked_mask(std::string_view by, const at::Tensor& mask,
                          const at::Tensor& tokens) const {
    if (!mask.defined()) return at::ones_like(tokens, at::kBool);
    require(mask.scalar_type() == at::kBool && mask.sizes() == tokens.sizes(),
            by, ": loss_mask must be bool ", tokens.sizes(), ", got ",
            at::toString(mask.scalar_type()), " ", mask.sizes());
    return mask;
  }
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model::Model(const ModelOptions& options, const std::string& device)
    : impl_(std::make_unique<Impl>()) {
  impl_->config = config_of(options);
  require_language_model(impl_->config);
  impl_->learner = std::make_unique<Learner>(
      impl_->config,
      placement_on(choose_device(device), impl_->config.train.precision));
}

Model Model::load(const std::string& directory, const std::string& device,
                  ModelUse use) {
  const auto where = choose_device(device);
  const bool trains = use == ModelUse::kTraining;
  const auto checkpoint =
      trains ? load_best_checkpoint(directory) : load_best_model(directory);
  require_language_model(checkpoint.config);
  auto impl = std::make_unique<Impl>();
  impl->config = checkpoint.config;
  impl->steps = checkpoint.step;
  impl->tokenizer = checkpoint.tokenizer;
  const Precision precision = checkpoint.config.train.precision;
  if (trains) {
    impl->learner = std::make_unique<Learner>(
        checkpoint.config, placement_of_trained(where, precision));
    impl->learner->load(checkpoint.parameters, checkpoint.optimizer);
  } else {
    impl->loaded = std::make_unique<LanguageModel>(
        checkpoint.config, placement_for_use(where, precision));
    load_parameters(*impl->loaded, checkpoint.parameters);
  }
  return Model(std::move(impl));
}

double Model::train_step(const at::Tensor& tokens,
                         const at::Tensor& loss_mask) {
  constexpr std::string_view kOp = "train_step";
  Learner& learner = impl_->trained(kOp);
  impl_->check_tokens(kOp, tokens, /*least_length=*/1);
  const auto mask = impl_->checked_mask(kOp, loss_mask, tokens);
  Config config = impl_->config;
  config.train.batch = tokens.size(0);
  config.train.length = tokens.size(1);
  require_memory_for_step(config, learner.model().placement());

  const int64_t step = impl_->steps + 1;
  const std::vector<Batch> batches = {{tokens, mask}};
  const auto numbers = learner.gradients(batches, step).read();
  require(numbers.finite(), kOp, ": the loss is not finite at step ", step,
          "; try a smaller learning rate, train.warmup or train.clip");
  learner.apply(step);
  impl_->steps = step;
  return numbers.sums.mean_loss();
}

double Model::evaluate(const at::Tensor& tokens,
                       const at::Tensor& loss_mask) const {
  constexpr std::string_view kOp = "evaluate";
  impl_->check_tokens(kOp, tokens, /*least_length=*/1);
  const auto mask = impl_->checked_mask(kOp, loss_mask, tokens);
  const at::NoGradGuard no_grad;
  return impl_->model()
      .evaluate(tokens, mask, evaluation_pass(impl_->config))
      .mean_loss();
}

at::Tensor Model::logits(const at::Tensor& tokens) const {
  impl_->check_tokens("logits", tokens, /*least_length=*/1);
  return impl_->model()
      .logits(tokens, evaluation_pass(impl_->config))
      .to(at::kCPU, at::kFloat);
}

at::Tensor Model::generate(const at::Tensor& prompt, int64_t count,
                           const SamplingOptions& sampling) const {
  constexpr std::string_view kOp = "generate";
  impl_->check_tokens(kOp, prompt, /*least_length=*/0);
  const int64_t room = length() - prompt.size(1);
  require(count >= 1 && count <= room, kOp, ": a count from 1 to ", room,
          " is required after a prompt of ", prompt.size(1),
          " tokens by a model of length ", length(), ", got ", count);
  const CompletionConfig config{.sampler = {.temperature = sampling.temperature,
                                            .top_k = sampling.top_k,
                                            .top_p = sampling.top_p,
                                            .seed = sampling.seed}};
  return complete(impl_->model(), prompt.to(at::kCPU), prompt.size(1) + count,
                  config, [](int64_t) { return true; });
}

void Model::save(const std::string& directory) const {
  save_run(directory, impl_->trained("save"), impl_->steps, impl_->tokenizer);
}

int64_t Model::steps() const { return impl_->steps; }

int64_t Model::vocabulary() const { return impl_->config.model.vocabulary; }

int64_t Model::length() const { return impl_->model().positions().limit(); }

int64_t Model::parameters() const {
  int64_t count = 0;
  for (const auto& parameter : impl_->model().parameters()) {
    count += parameter.value.numel();
  }
  return count;
}

std::string Model::settings() const { return config_to_json(impl_->config); }

}  // namespace reformer
