#include "cli/bench/options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "cli/options/command_line.h"
#include "cli/options/config_options.h"
#include "cli/process/machine.h"
#include "reformer/base/errors.h"
#include "reformer/config/bucket_count.h"
#include "reformer/device/device.h"
#include "reformer/model/placement.h"

namespace reformer::cli {
namespace {

constexpr int64_t kMaxNumber = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxThreads = 1024;

std::string joined(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

void add_list(CLI::App& app, const char* name, std::vector<int64_t>& values,
              const char* help, const CLI::Validator& check) {
  app.add_option(name, values, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(check)
      ->type_name("N,...")
      ->default_str(joined(values));
}

void add_number(CLI::App& app, const char* name, int64_t& value,
                const char* help, const CLI::Validator& check) {
  app.add_option(name, value, help)
      ->check(check)
      ->take_last()
      ->type_name("N")
      ->capture_default_str();
}

template <class E>
void add_choice(CLI::App& app, const char* name, Choice<E>& value,
                const char* help) {
  const auto& names = ChoiceNames<E>::names;
  app.add_option_function<std::string>(
         name, [&value](const std::string& text) { value = text; }, help)
      ->check(one_of({std::begin(names), std::end(names)}))
      ->take_last()
      ->type_name("NAME")
      ->default_str(value.name());
}

int64_t largest(const std::vector<int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

// What a pass holds at the very least, or the system would end the process
// without a word: inputs, output, gradients; order, place and interval.
void require_memory(const BenchOptions& options) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const int64_t length = largest(options.lengths);
  const int64_t rounds = largest(options.rounds);
  const double rows =
      double(options.batch) * double(options.heads) * double(length);
  const double bytes =
      rows * (6.0 * 4.0 * double(options.d_head) + 16.0 * double(rounds));
  const double machine = double(physical_memory_bytes());
  require(bytes <= machine, "out of memory: --length ", length, " --rounds ",
          rounds, " --batch ", options.batch, " --heads ", options.heads,
          " needs at least ", std::ceil(bytes / kGib),
          " GiB, this machine has ", std::floor(machine / kGib),
          " GiB; choose smaller ones");
}

}  // namespace

BenchOptions::BenchOptions(std::vector<int64_t> default_lengths)
    : lengths(std::move(default_lengths)), threads(available_threads()) {}

void BenchOptions::add_to(CLI::App& app) {
  const auto size = whole_number(1, kMaxLength);
  add_device_option(app, device);
  add_choice(app, "--dtype", dtype,
             "float32 or bfloat16; auto: bfloat16 on a GPU");
  add_list(app, "--length", lengths, "positions of a sequence", size);
  add_list(app, "--rounds", rounds, "hash rounds", size);
  add_number(app, "--batch", batch, "sequences", size);
  add_number(app, "--heads", heads, "attention heads", size);
  add_number(app, "--d-head", d_head, "size of a head, 8 to 256",
             whole_number(8, 256));
  add_number(app, "--chunk", chunk_length, "sorted positions of a chunk", size);
  add_choice(app, "--window", window, "chunk (the paper's) or trailing");
  add_number(app, "--local-window", local_window,
             "last positions joined as one more round; 0: none",
             whole_number(0, kMaxLength));
  add_choice(app, "--data", data,
             "random (iid normal) or clustered (16 directions with noise)");
  add_number(app, "--seed", seed, "seed of data and hashes",
             whole_number(0, kMaxNumber));
  add_number(app, "--threads", threads, "threads to use",
             whole_number(1, kMaxThreads));
  add_number(app, "--repeats", repeats,
             "measurements, of which the median counts; 0: at least 3 and "
             "for a second",
             whole_number(0, kMaxNumber));
  app.add_flag("--json", json, "one JSON object a line on stdout");
}

at::Device BenchOptions::prepare() const {
  const at::Device chosen = choose_device(device);
  require(chosen.is_cuda() || dtype != Precision::kBfloat16,
          "--dtype bfloat16: the CPU's kernels are float32; use --dtype "
          "float32");
  if (chosen.is_cpu()) require_memory(*this);
  use_threads(static_cast<int>(threads));
  return chosen;
}

void BenchOptions::prepare_cpu() const {
  BenchOptions on_cpu = *this;
  require(!cuda_index(device), "--device ", device,
          ": this measures a CPU kernel; use --device cpu");
  on_cpu.device = "cpu";
  on_cpu.prepare();
}

at::ScalarType BenchOptions::type_on(at::Device chosen) const {
  return placement_on(chosen, dtype).compute;
}

LshConfig BenchOptions::config(int64_t length, int64_t config_rounds) const {
  LshConfig config;
  config.rounds = config_rounds;
  config.chunk_length = chunk_length;
  config.n_buckets = default_bucket_count(length, chunk_length);
  config.local_window = local_window;
  config.window = window;
  return config;
}

std::string name_of(at::ScalarType type) {
  return type == at::kBFloat16 ? "bfloat16" : "float32";
}

std::string BenchOptions::describe(at::Device chosen) const {
  std::ostringstream text;
  text << "batch " << batch << ", " << heads << " heads of " << d_head << ", "
       << name_of(type_on(chosen)) << ", causal\nchunk " << chunk_length
       << ", window " << window << ", local window " << local_window << ", "
       << data << " data";
  return text.str();
}

}  // namespace reformer::cli
