#include "cli/commands/serve.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/options/config_options.h"
#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "cli/screen/table.h"
#include "cli/serve/engine.h"
#include "cli/serve/http_server.h"
#include "cli/serve/loopback.h"
#include "cli/serve/served_model.h"
#include "reformer/base/errors.h"
#include "reformer/base/machine_memory.h"
#include "reformer/base/parallel.h"
#include "reformer/device/device.h"
#include "reformer/generate/decoding_memory.h"
#include "reformer/kernels/key_value_pages.h"

namespace reformer::cli {
namespace {

constexpr int64_t kShortestToken = 16;
// Of what a machine has, for caches, where nobody says otherwise.
constexpr int64_t kShareOfMemory = 4;

struct ServeOptions {
  std::string directory;
  HttpOptions http;
  int64_t batch = 0;  // 0: 8 on a CPU, 32 on a GPU
  int64_t queue = 64;
  int64_t context = 0;    // 0: the model's
  int64_t positions = 0;  // 0: what fits
  int64_t body = 0;       // 0: what the context needs
  std::string device = "auto";
  int64_t threads = 0;
};

int64_t context_of(const ServeOptions& options, const ServedModel& model) {
  if (!model.language) return model.config.train.length;
  // The start token has a position, and the last one drawn needs none.
  const int64_t most = model.language->positions().limit();
  require(options.context <= most,
          "--context: this model's positions end after ", most, " tokens, got ",
          options.context);
  return options.context > 0 ? options.context
                             : std::min(most, model.config.train.length);
}

int64_t most_rounds(const Config& config) {
  return std::max<int64_t>(2 * config.lsh.rounds, 8);
}

// Texts of other rounds than the model's have caches of their own beside it.
int64_t memory_of(const ServedModel& model, int64_t positions) {
  return decoding_memory(*model.language, positions, most_rounds(model.config));
}

// Positions of all running texts together.
int64_t all_positions(const ServeOptions& options, const ServedModel& model,
                      int64_t batch, int64_t context) {
  const int64_t one = positions_of(context, /*max_tokens=*/0);
  if (options.positions > 0) {
    require(options.positions >= one, "--positions: a text of ", context,
            " tokens takes ", one, ", got ", options.positions);
    return options.positions;
  }
  const int64_t allowed = machine_memory() / kShareOfMemory;
  const int64_t fits = allowed / std::max<int64_t>(1, memory_of(model, one));
  return one * std::clamp<int64_t>(fits, 1, batch);
}

// Bytes of the caches of the texts that run together, few long ones or many
// short ones.
int64_t predicted_memory(const ServedModel& model, const EngineLimits& limits) {
  int64_t most = 0;
  for (int64_t texts = 1; texts <= limits.batch; ++texts) {
    const int64_t each =
        std::max<int64_t>(kernels::kPagePositions, limits.positions / texts);
    most = std::max(most, texts * memory_of(model, each));
  }
  return most;
}

void say_limits(const ServedModel& model, const EngineLimits& limits,
                const HttpOptions& http) {
  Report report(/*json=*/false);
  if (!model.language) return;
  report.note("up to " + counted(limits.batch, "text") + " at once, " +
              std::to_string(limits.queue) + " more wait; texts of up to " +
              counted(http.context, "token") + ", the running ones of up to " +
              std::to_string(limits.positions) +
              " positions together: caches of about " +
              gibibytes(double(http.predicted)) +
              ", beside the model and what a pass over a prompt takes");
}

void check(const ServeOptions& options) {
  const auto& http = options.http;
  require(is_loopback(http.host) || !http.token.empty(), "--host ", http.host,
          " is open to other machines: it needs a --token, which they have to "
          "know");
  require(http.token.empty() || std::ssize(http.token) >= kShortestToken,
          "--token: at least ", kShortestToken,
          " characters are required, got ", http.token.size());
  for (const char c : http.token) {
    require(c > ' ' && c < '\x7f',
            "--token: letters, digits and signs of ASCII are required, without "
            "spaces");
  }
}

void run_serve(ServeOptions options) {
  require_http();
  check(options);
  const auto device = use_machine(options.device, options.threads);
  stop_requested();  // from here on a wish
  const auto model = load_served_model(options.directory, device);
  EngineLimits limits;
  limits.batch = options.batch > 0 ? options.batch : device.is_cpu() ? 8 : 32;
  limits.queue = options.queue;
  auto& http = options.http;
  http.context = context_of(options, model);
  http.most_rounds = most_rounds(model.config);
  if (model.language) {
    limits.positions =
        all_positions(options, model, limits.batch, http.context);
    http.predicted = predicted_memory(model, limits);
  }
  http.body = options.body > 0
                  ? options.body
                  : std::max<int64_t>(int64_t{1} << 20, 16 * http.context);
  say_limits(model, limits, http);
  release_threads();  // from here on the engine computes
  Engine engine(model.language.get(), model.writing.get(), limits);
  serve_http(model, engine, http);
}

void add_limits(CLI::App& command, ServeOptions& options) {
  const auto add = [&](const char* name, int64_t& value, int64_t least,
                       int64_t most, const char* help) {
    command.add_option(name, value, help)
        ->check(whole_number(least, most))
        ->type_name("N")
        ->group("Limits");
  };
  add("--batch", options.batch, 1, 1024,
      "texts that go on together [8 on a CPU, 32 on a GPU]");
  add("--queue", options.queue, 0, 100000,
      "texts that may wait; more are told to come again, 429 [64]");
  add("--context", options.context, 1, kMaxLength,
      "tokens of a prompt with what follows it [as the model was trained]");
  add("--positions", options.positions, 1, kMaxLength,
      "of all texts that run together, by which their memory is bounded [what "
      "a quarter of the memory holds]");
  add("--body", options.body, 1, kMaxLength,
      "bytes of a request; larger ones: 413 [1 MiB, or 16 a token]");
  add("--timeout", options.http.timeout, 1, 86400,
      "seconds for which a client may say and take nothing [10]");
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "serve",
      "Open a trained model in a browser, and to programs that speak OpenAI's "
      "interface for completions");
  const auto options = std::make_shared<ServeOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required()
      ->check(not_empty());
  command.add_option("--port", options->http.port, "0: any that is free")
      ->check(whole_number(0, 65535))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--host", options->http.host,
                  "who may come: 127.0.0.1 is this machine alone; others need "
                  "--token")
      ->check(not_empty())
      ->type_name("ADDRESS")
      ->capture_default_str();
  command
      .add_option("--token", options->http.token,
                  "what clients have to send, Authorization: Bearer TOKEN")
      ->envname("REFORMER_TOKEN")
      ->type_name("TOKEN");
  add_limits(command, *options);
  add_machine_options(command, options->device, options->threads);
  command.callback(
      [options, &action] { action = [options] { run_serve(*options); }; });
}

}  // namespace reformer::cli
