/// @file
/// A language model: reversible blocks of LSH attention and feed-forward layers
/// that predict each token from those before it. It trains on tokens that the
/// caller has, is saved and loaded, and generates.
///
///     reformer::Model model({.layers = 2, .d_model = 64, .heads = 4,
///                            .vocabulary = 16, .length = 256});
///     for (int step = 0; step < 100; ++step) model.train_step(batch(step));
///     model.save("run");
///     auto text = reformer::Model::load("run").generate(prompt, 100);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reformer {

/// What a new Model is. Whatever has no field here has a setting.
struct ModelOptions {
  int64_t layers = 3;        ///< blocks, each an attention and a feed-forward
  int64_t d_model = 512;     ///< width of the two residual streams
  int64_t d_ff = 0;          ///< width within the feed-forward; 0: 4 d_model
  int64_t heads = 8;         ///< attention heads; d_model / heads from 8 to 256
  int64_t vocabulary = 256;  ///< tokens are 0 to vocabulary - 1; at least 2
  int64_t length = 4096;     ///< the longest sequence (with sinusoid or rotary
                             ///< positions the usual one); sets the buckets
  std::string attention = "lsh";  ///< lsh, local, full, full_shared_qk, or a
                                  ///< list that layers repeat: "local,lsh"
  double learning_rate = 1e-3;    ///< of AdamW, from the first step on
  int64_t seed = 0;    ///< of parameters, hashes and dropout; not negative
  bool bytes = false;  ///< tokens are bytes: the program's `reformer generate`
                       ///< reads and writes text; else numbers

  /// All other settings, "KEY=VALUE" as the program's `--set` takes them
  /// (`reformer settings` lists them); they have the last word.
  std::vector<std::string> settings = {};
};

/// How Model::generate() chooses the next token.
struct SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0: always the most probable
  int64_t top_k = 0;       ///< only the k most probable tokens; 0: all
  double top_p = 1;        ///< of those, the fewest whose probabilities reach p
  uint64_t seed = 0;       ///< the same seed, the same tokens
};

/// What a Model is loaded for.
enum class ModelUse {
  kTraining,   ///< everything; holds the optimizer's state too
  kInference,  ///< not train_step() nor save(): a third of the memory or less
};

/// A language model and its optimizer.
///
/// **Tokens** are [batch, length] int64 in [0, vocabulary), on any device, of
/// any batch size and of at most length() positions. Others throw Error before
/// anything is done, as all mistakes do.
///
/// **Devices.** "cpu", "cuda", "cuda:N", or "auto": the first GPU where
/// cuda_available(), else the CPU. A model stays where it was made and takes
/// what it is given there; what it returns is on the CPU. A GPU computes in
/// bfloat16 but for "train.precision=float32"; parameters are float32.
///
/// **Threads.** Each thread may have models of its own. Of one model, threads
/// may call const functions at the same time (not with "train.offload=true",
/// whose blocks come and go); everything else only while no other thread uses
/// it.
///
/// **Folders** are those of the program: `reformer train` writes what load()
/// reads, and `reformer generate` and `reformer export` read what save()
/// writes.
class Model {
 public:
  /// A model with random parameters, the same on every device.
  explicit Model(const ModelOptions& options,
                 const std::string& device = "auto");

  /// The model in a folder that save(), `reformer train` or `reformer export`
  /// wrote: the best checkpoint where one is marked, else the newest. Training
  /// goes on where that ended. Throws Error where there is none, or it is
  /// damaged.
  static Model load(const std::string& directory,
                    const std::string& device = "auto",
                    ModelUse use = ModelUse::kTraining);

  ~Model();
  /// Models move, they are not copied. One that was moved from may only be
  /// destroyed or assigned to.
  Model(Model&&) noexcept;
  /// Likewise.
  Model& operator=(Model&&) noexcept;

  /// One step of the optimizer on a batch. Returns the mean loss before it, in
  /// nats a token.
  ///
  ///     loss_mask  [batch, length] bool: which tokens count; undefined: all
  ///
  /// Throws Error where the loss is not finite, and leaves the model as it was
  /// (with "train.offload=true", of no use: load it again).
  double train_step(const at::Tensor& tokens, const at::Tensor& loss_mask = {});

  /// The mean loss, in nats a token, without learning. Likewise.
  double evaluate(const at::Tensor& tokens,
                  const at::Tensor& loss_mask = {}) const;

  /// What each token is predicted by: [batch, length, vocabulary] float32; at
  /// position i from the tokens before i.
  at::Tensor logits(const at::Tensor& tokens) const;

  /// Continues each row of `prompt`, [batch, n], which may be of n = 0, by
  /// `count` tokens, n + count at most length(). Returns [batch, n + count].
  /// Rows do not influence each other. LSH windows are trailing ones, also of a
  /// model that was trained with others ("lsh.window=chunk"). The cost of a
  /// token does not grow with what was read, but for full attention.
  at::Tensor generate(const at::Tensor& prompt, int64_t count,
                      const SamplingOptions& sampling = {}) const;

  /// Writes a checkpoint, whole or not at all, that load() reads from now on.
  /// The folder is new or empty, or holds older checkpoints of these settings,
  /// of which the last two stay; else Error is thrown, as on a full disk.
  void save(const std::string& directory) const;

  /// Steps taken, those before it was saved included.
  int64_t steps() const;

  int64_t vocabulary() const;  ///< tokens are 0 to vocabulary() - 1
  int64_t length() const;      ///< the longest sequence
  int64_t parameters() const;  ///< how many elements were learned

  /// All settings, as JSON: what `reformer train FILE` reads.
  std::string settings() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace reformer
