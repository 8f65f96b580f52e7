#include "cli/commands/export.h"

#include <memory>
#include <string>

#include "cli/screen/output.h"
#include "reformer/base/errors.h"
#include "reformer/io/checkpoint.h"
#include "reformer/io/huggingface.h"

namespace reformer::cli {
namespace {

struct ExportOptions {
  std::string directory;
  std::string out;
  std::string type = "bfloat16";
  std::string format = "reformer";
  int64_t file_mebibytes = 0;
};

void export_for_transformers(const ExportOptions& options,
                             const Checkpoint& checkpoint) {
  export_huggingface(options.out, checkpoint);
  print("the model of step " + std::to_string(checkpoint.step) + " is in " +
        options.out + "; transformers loads it by ReformerModelWithLMHead\n");
  if (!checkpoint.config.model.attention.contains(AttentionKind::kLsh)) return;
  Report(/*json=*/false)
      .note(
          "it was trained with attention of lsh; transformers computes "
          "lsh_huggingface with these parameters, another function: expect "
          "another loss there (import it again, and eval says which)");
}

void run_export(const ExportOptions& options) {
  const auto checkpoint = load_best_model(options.directory);
  if (options.format == "huggingface") {
    return export_for_transformers(options, checkpoint);
  }
  export_model(options.out, checkpoint,
               options.type == "bfloat16" ? at::kBFloat16 : at::kFloat,
               options.file_mebibytes << 20);
  print("the model of step " + std::to_string(checkpoint.step) + " is in " +
        options.out + "; eval and generate take it as they take a run\n");
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "export", "Write a trained model, without its optimizer, for use");
  const auto options = std::make_shared<ExportOptions>();
  command.add_option("DIR", options->directory, "folder of the run")
      ->required()
      ->check(not_empty());
  add_new_folder(command, options->out);
  auto* type =
      command.add_option("--type", options->type, "bfloat16 or float32")
          ->check(one_of({"bfloat16", "float32"}))
          ->type_name("NAME")
          ->capture_default_str();
  command
      .add_option("--format", options->format,
                  "reformer: for this program; huggingface: for transformers, "
                  "always one file of float32")
      ->check(one_of({"reformer", "huggingface"}))
      ->type_name("NAME")
      ->capture_default_str();
  auto* size =
      command
          .add_option("--file-size", options->file_mebibytes,
                      "MiB that a file may have; 0: one file of any size")
          ->check(whole_number(0, 1 << 20))
          ->type_name("N")
          ->capture_default_str();
  command.callback([options, type, size, &action] {
    for (const auto* option : {type, size}) {
      require(options->format != "huggingface" || option->count() == 0,
              option->get_name(),
              ": --format huggingface is always one file of float32");
    }
    action = [options] { run_export(*options); };
  });
}

}  // namespace reformer::cli
