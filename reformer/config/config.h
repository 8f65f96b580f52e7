// Every setting of a model and its training, listed once. Parsing, --set,
// `info`, checkpoints and error messages are visitors of these lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/config/choices.h"
#include "reformer/config/lsh_config.h"

namespace reformer {

struct ModelConfig {
  int64_t layers = 3;
  int64_t encoder_layers = 0;
  int64_t d_model = 512;
  int64_t d_ff = 2048;
  int64_t heads = 8;
  int64_t d_head = 0;
  int64_t vocabulary = 256;
  AttentionKinds attention = AttentionKind::kLsh;
  AttentionKinds encoder_attention = AttentionKind::kFull;
  bool share_embeddings = false;
  double successor_fraction = 0;
  Choice<BlockKind> block = BlockKind::kReversible;
  Choice<ActivationKind> activation = ActivationKind::kGelu;
  double dropout = 0;
  double norm_epsilon = 1e-5;
  int64_t short_convolution = 0;
  int64_t local_chunk_length = 0;
  std::vector<int64_t> bucket_factors;
  Choice<PositionKind> positions = PositionKind::kLearned;
  std::vector<int64_t> axial_shape;
  std::vector<int64_t> axial_dims;
  int64_t ngram_length = 0;
  int64_t ngram_rows = 32768;
  int64_t feed_forward_chunk = 0;
  int64_t loss_chunk = 0;

  template <class Visitor>
  void visit(Visitor&& v) {
    v("model.layers", layers,
      "blocks, each an attention and a feed-forward; of an encoder-decoder "
      "those of the decoder, with a cross-attention each");
    v("model.encoder_layers", encoder_layers,
      "blocks of an encoder, which the decoder reads: an encoder-decoder; 0: a "
      "language model");
    v("model.d_model", d_model, "width of the two residual streams");
    v("model.d_ff", d_ff, "inner width of the feed-forward");
    v("model.heads", heads, "attention heads");
    v("model.d_head", d_head, "width of a head (d_k); 0: d_model / heads");
    v("model.vocabulary", vocabulary,
      "tokens; with a tokenizer it becomes the number of its pieces");
    v("model.attention", attention,
      "full, full_shared_qk, local, lsh, or as Hugging Face's Reformers have "
      "them local_separate_qk, lsh_huggingface; a comma-separated list is "
      "repeated over the layers");
    v("model.encoder_attention", encoder_attention,
      "likewise of the encoder, whose positions see those after them, too");
    v("model.share_embeddings", share_embeddings,
      "encoder-decoder: one matrix embeds source and target and is the output "
      "projection (Vaswani et al.); false: three");
    v("model.successor_fraction", successor_fraction,
      "share of the heads whose keys offer the value of the position after "
      "them: what came next the last time; not in full attention; 0: the "
      "paper's");
    v("model.block", block,
      "reversible (the paper's, inputs rebuilt), stored (the same function, "
      "activations kept: faster, with memory for every layer) or residual "
      "(the ordinary Transformer)");
    v("model.activation", activation,
      "relu, gelu (by tanh), gelu_erf or relu_squared, in the feed-forward");
    v("model.dropout", dropout,
      "after attention and after feed-forward; of an encoder-decoder also "
      "after the embeddings");
    v("model.norm_epsilon", norm_epsilon,
      "what layer norms add to the variance");
    v("model.short_convolution", short_convolution,
      "positions that each query, key and value is mixed from, column by "
      "column: its own and those before it (a short causal convolution); 0: "
      "none, the paper's");
    v("model.local_chunk_length", local_chunk_length,
      "positions of a chunk of local attention; 0: lsh.chunk_length");
    v("model.bucket_factors", bucket_factors,
      "lsh_huggingface: the factors of a round's number of buckets, one argmax "
      "each, the least significant first; lsh.n_buckets is not read");
    v("model.positions", positions,
      "learned, axial, sinusoid (added to the embedding), or rotary (turns "
      "queries and keys, but for those of successor heads; of any length)");
    v("model.axial_shape", axial_shape,
      "axial positions: the axes' lengths; their product is the longest input");
    v("model.axial_dims", axial_dims,
      "axial positions: the axes' widths; their sum is d_model");
    v("model.ngram_length", ngram_length,
      "inputs have embeddings of their n-grams too, of 2 to so many tokens up "
      "to each; 0: none, the paper's");
    v("model.ngram_rows", ngram_rows,
      "rows of the table of each n, into which n-grams are hashed");
    v("model.feed_forward_chunk", feed_forward_chunk,
      "positions the feed-forward takes at once; 0: chosen, no result changes");
    v("model.loss_chunk", loss_chunk,
      "positions the loss takes at once; 0: chosen, no result changes");
  }
};

struct TrainConfig {
  int64_t steps = 1000;
  int64_t batch = 1;
  int64_t length = 4096;
  int64_t batch_tokens = 0;
  int64_t seed = 0;
  int64_t accumulate = 1;
  Choice<OptimizerKind> optimizer = OptimizerKind::kAdamw;
  double learning_rate = 1e-3;
  Choice<ScheduleKind> schedule = ScheduleKind::kConstant;
  int64_t warmup = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.95;
  double clip = 0;
  double label_smoothing = 0;
  int64_t evaluate_every = 0;
  int64_t evaluate_batches = 0;
  int64_t checkpoint_every = 0;
  int64_t keep = 2;
  int64_t log_every = 10;
  double minutes = 0;
  int64_t sample_length = 0;
  Choice<Precision> precision = Precision::kAuto;
  Choice<GraphUse> cuda_graph = GraphUse::kAuto;
  bool deterministic = true;
  bool offload = false;
  double device_memory = 0;
  bool shard_optimizer = false;
  int64_t sequence_parallel = 1;

  template <class Visitor>
  void visit(Visitor&& v) {
    v("train.steps", steps, "optimizer steps");
    v("train.batch", batch, "sequences of a batch, of all ranks together");
    v("train.length", length,
      "positions of a sequence; translation: the longest of a sentence, its "
      "end included; longer pairs are left out");
    v("train.batch_tokens", batch_tokens,
      "translation: positions of a batch, of source and target together, "
      "padding included; 0: train.batch sentences");
    v("train.seed", seed, "seed of parameters, data, hashes and dropout");
    v("train.accumulate", accumulate,
      "gradient accumulation: batches whose gradients make one step");
    v("train.optimizer", optimizer,
      "adafactor, adam, adamw or muon (of the blocks' matrices; adamw's of the "
      "rest)");
    v("train.learning_rate", learning_rate, "c: the schedule's factor");
    v("train.schedule", schedule,
      "constant, rsqrt (c min(1, t/w) / sqrt(max(t, w))) or cosine (to 0 at "
      "train.steps)");
    v("train.warmup", warmup, "w: steps until the full rate");
    v("train.weight_decay", weight_decay,
      "adamw's and muon's, of matrices and tables (rank 2 and more), not of "
      "vectors");
    v("train.beta1", beta1, "adam's and adamw's, muon's of the rest");
    v("train.beta2", beta2, "adam's and adamw's, muon's of the rest");
    v("train.epsilon", epsilon, "adam's and adamw's, muon's of the rest");
    v("train.momentum", momentum, "muon's, of matrices (Nesterov)");
    v("train.clip", clip, "largest norm of all gradients; 0: any");
    v("train.label_smoothing", label_smoothing,
      "share of what the loss wants that is spread evenly over all tokens; "
      "losses are reported without it");
    v("train.evaluate_every", evaluate_every,
      "steps between evaluations; 0: at the end only");
    v("train.evaluate_batches", evaluate_batches,
      "batches of an evaluation in training; 0: all");
    v("train.checkpoint_every", checkpoint_every,
      "steps between checkpoints; 0: at the end only");
    v("train.keep", keep, "checkpoints to keep, besides the best");
    v("train.log_every", log_every, "steps between lines of metrics");
    v("train.precision", precision,
      "of matmuls and attention: float32, bfloat16 (mixed precision, GPU "
      "only), or auto: "
      "bfloat16 on a GPU, float32 on a CPU");
    v("train.cuda_graph", cuda_graph,
      "a step is captured as a CUDA graph and replayed: on, off, or auto: "
      "where its kernels are so small that the host could not launch them in "
      "time, and memory suffices");
    v("train.deterministic", deterministic,
      "the same bits every time on the same GPU; false: layers of full "
      "attention take kernels whose gradients add in any order, in half the "
      "time or less, nothing else changes");
    v("train.offload", offload,
      "parameters of the blocks and their optimizer state live in the host's "
      "memory, from where each block's arrive ahead of its computation");
    v("train.device_memory", device_memory,
      "GiB of a GPU that may be used; 0: all there are");
    v("train.shard_optimizer", shard_optimizer,
      "several ranks: each keeps and updates its part of the optimizer's state "
      "(ZeRO-1), and gets the others' parameters from them");
    v("train.sequence_parallel", sequence_parallel,
      "ranks that share one sequence, by its positions, in attention by heads "
      "(Ulysses); a divisor of the number of ranks; 1: each rank has whole "
      "sequences");
    v("train.minutes", minutes,
      "stop after so many minutes, to which the cosine schedule is fitted; 0: "
      "after steps. Such a run is not repeated bit for bit");
    v("train.sample_length", sample_length,
      "tokens that a model of text writes after each evaluation, to be looked "
      "at; 0: none");
  }
};

struct TaskConfig {
  Choice<TaskKind> name = TaskKind::kText;
  std::string data;
  std::string validation;
  std::string test;
  std::string cache;
  int64_t alphabet = 127;
  int64_t key_length = 2;
  int64_t image_size = 64;
  double repeats = 0;
  std::string tokenizer;
  int64_t byte_offset = 0;
  std::string source_language = "en";
  std::string target_language = "de";

  template <class Visitor>
  void visit(Visitor&& v) {
    v("task.name", name,
      "text, images, duplication, recall, translation or translation-toy; "
      "none: of a model that a program trains on tokens of its own");
    v("task.data", data,
      "a file, or a folder or archive of files; - is standard input, of text; "
      "of translation also two files with a comma between them, or what stands "
      "before their languages");
    v("task.validation", validation,
      "data of its own; else 5% of a text, after the training split, or the "
      "images or sentences that their names say");
    v("task.test", test,
      "data of its own; else the last 5% of a text, or the images or sentences "
      "that their names say");
    v("task.cache", cache,
      "folder of what was decoded; empty: $XDG_CACHE_HOME/reformer or "
      "~/.cache/reformer");
    v("task.alphabet", alphabet,
      "duplication: tokens besides the separator; recall: those of keys, and "
      "as many of values");
    v("task.key_length", key_length, "recall: tokens of a key");
    v("task.image_size", image_size,
      "images: pixels of a side; train.length is 3 image_size^2");
    v("task.repeats", repeats,
      "text: share of a training sequence that is a second time of what it has "
      "said before, pieces of 64 tokens and more at all distances; teaches to "
      "look back; 0: none");
    v("task.tokenizer", tokenizer,
      "text, translation: a SentencePiece model (.model), whose pieces are the "
      "tokens, and their number model.vocabulary; empty: bytes, of translation "
      "one of model.vocabulary pieces that is made of the data");
    v("task.byte_offset", byte_offset,
      "text of bytes: the token that byte 0 is; those below it are no text");
    v("task.source_language", source_language,
      "translation: how names of files end (train.en)");
    v("task.target_language", target_language, "translation: likewise");
  }
};

struct DistributedConfig {
  double timeout = 60;
  Choice<CommunicationKind> backend = CommunicationKind::kAuto;

  template <class Visitor>
  void visit(Visitor&& v) {
    v("distributed.timeout", timeout,
      "several ranks: seconds that one waits for the others before all end");
    v("distributed.backend", backend,
      "several ranks: nccl (between GPUs), gloo (between CPUs; GPUs' numbers "
      "go through the host), or auto: nccl on GPUs, gloo on CPUs");
  }
};

struct Config {
  TaskConfig task;
  ModelConfig model;
  LshConfig lsh;
  TrainConfig train;
  DistributedConfig distributed;

  template <class Visitor>
  void visit(Visitor&& v) {
    task.visit(v);
    model.visit(v);
    lsh.visit(v);
    train.visit(v);
    distributed.visit(v);
  }
};

// The attention of each layer, model.attention repeated over model.layers.
std::vector<AttentionKind> layer_attentions(const ModelConfig& model);

// Likewise of the encoder's layers.
std::vector<AttentionKind> encoder_attentions(const ModelConfig& model);

// What 0 stands for: d_model / heads.
int64_t head_size(const ModelConfig& model);

// How many heads model.successor_fraction is: the nearest number.
int64_t successor_heads(const ModelConfig& model);

// Heads of a layer of LSH attention that hash, the first ones. The others see
// the last lsh.local_window positions.
int64_t hashed_heads(const Config& config);

// The last positions that those heads see besides: 0, or lsh.local_window.
int64_t local_window_of_hashed(const Config& config);

// What 0 stands for: lsh.chunk_length.
int64_t local_chunk_length(const Config& config);

// Pairs of a head's columns that rotary positions turn; 0 with others.
int64_t rotary_pairs(const ModelConfig& model);

// Tables of n-grams, one for each n from 2 to model.ngram_length.
int64_t ngram_tables(const ModelConfig& model);

// Positions before its own that a short convolution mixes in.
int64_t convolution_taps(const ModelConfig& model);

// Of the made language of translation-toy: its words of both languages, and
// the tokens 0 to 2, which are none.
int64_t toy_vocabulary(const TaskConfig& task);

// Of a sequence of the recall task: two fifths of its slots, at least 1.
int64_t recall_pairs(const Config& config);

// Throws Error, naming the key, unless every value is possible and they fit
// each other (heads divide d_model, axial sizes match, n_buckets is possible).
void check(const Config& config);

}  // namespace reformer
