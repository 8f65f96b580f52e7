#include "cli/commands/import.h"

#include <memory>
#include <string>

#include "cli/screen/output.h"
#include "reformer/io/huggingface.h"

namespace reformer::cli {
namespace {

struct ImportCommand {
  std::string directory;
  std::string out;
  std::string attention = "theirs";
  int64_t length = ImportOptions().length;
};

void run_import(const ImportCommand& command) {
  ImportOptions options;
  options.our_attention = command.attention == "ours";
  options.length = command.length;
  const auto checkpoint = import_huggingface(command.directory, options);
  export_model(command.out, checkpoint, at::kFloat, /*most_bytes=*/0);
  print("the model is in " + command.out +
        "; eval and generate take it as they take a run, train --init " +
        command.out + " goes on from it\n");
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto& command = *app.add_subcommand(
      "import", "Read a Reformer that Hugging Face's transformers saved");
  const auto options = std::make_shared<ImportCommand>();
  command
      .add_option("DIR", options->directory,
                  "its folder: config.json, model.safetensors, spiece.model "
                  "where it has one")
      ->required()
      ->check(not_empty());
  add_new_folder(command, options->out);
  command
      .add_option("--attention", options->attention,
                  "of its LSH layers: theirs (lsh_huggingface), or ours (lsh: "
                  "faster, with little memory, another function)")
      ->check(one_of({"theirs", "ours"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--length", options->length,
                  "positions of a sequence in training and eval, at most the "
                  "model's")
      ->check(whole_number(1, kMaxLength))
      ->type_name("N")
      ->capture_default_str();
  command.callback(
      [options, &action] { action = [options] { run_import(*options); }; });
}

}  // namespace reformer::cli
