#include "cli/gnuplot.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "reformer/core/errors.h"

extern char** environ;

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

std::string terminal_of(const std::string& path, PictureSize size) {
  const std::string ending = fs::path(path).extension().string();
  const std::string pixels =
      std::to_string(size.width) + "," + std::to_string(size.height);
  if (ending == ".png") {
    return "set terminal pngcairo size " + pixels +
           " font 'Sans,13' linewidth 1.5\n";
  }
  require(ending == ".svg", "a picture's name must end in .png or .svg, got '",
          path, "'");
  return "set terminal svg size " + pixels +
         " font 'Sans,13' linewidth 1.5 background rgb 'white'\n";
}

// A file without a name, gone when closed.
using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile(), std::fclose);
  require(file != nullptr,
          "cannot make a temporary file: ", std::strerror(errno));
  return file;
}

TemporaryFile temporary_file(const std::string& contents) {
  TemporaryFile file = temporary_file();
  const bool written = std::fputs(contents.c_str(), file.get()) >= 0 &&
                       std::fflush(file.get()) == 0;
  require(written, "cannot write a temporary file: ", std::strerror(errno));
  std::rewind(file.get());
  return file;
}

// gnuplot's complaints show the line, a caret under it, then the reason.
std::string last_line_of(std::FILE* file) {
  std::rewind(file);
  std::string last;
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    if (std::strspn(line, " \t") != std::strlen(line)) last = line;
  }
  return last.substr(std::min(last.find_first_not_of(" \t"), last.size()));
}

// Returns spawn's error, or 0 and the process.
int spawn_gnuplot(std::FILE* script, std::FILE* complaints, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(script), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(complaints), STDERR_FILENO);
  char program[] = "gnuplot";
  char no_user_settings[] = "-d";
  char* arguments[] = {program, no_user_settings, nullptr};
  const int fault =
      posix_spawnp(&process, program, &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  return fault;
}

void run_gnuplot(const std::string& script) {
  const TemporaryFile input = temporary_file(script);
  const TemporaryFile complaints = temporary_file();
  pid_t process = 0;
  const int fault = spawn_gnuplot(input.get(), complaints.get(), process);
  require(fault != ENOENT,
          "gnuplot is missing; install it with: sudo apt-get install "
          "gnuplot-nox");
  require(fault == 0, "cannot run gnuplot: ", std::strerror(fault));
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  require(status == 0, "gnuplot failed: ", last_line_of(complaints.get()));
}

// The same ending, and beside the picture: a rename across disks would fail.
std::string unfinished_name(const std::string& path) {
  const fs::path whole(path);
  return (whole.parent_path() /
          (".tmp-" + std::to_string(getpid()) + whole.filename().string()))
      .string();
}

}  // namespace

void draw_picture(const std::string& script, const std::string& path,
                  PictureSize size) {
  const std::string terminal = terminal_of(path, size);
  const fs::path folder = fs::absolute(path).parent_path();
  require(fs::is_directory(folder), "cannot write ", path, ": ",
          folder.string(), " is no folder");
  const std::string unfinished = unfinished_name(path);
  std::error_code fault;
  try {
    run_gnuplot(terminal + "set output " + gnuplot_quoted(unfinished) + "\n" +
                script + "\nset output\n");
  } catch (const Error&) {
    fs::remove(unfinished, fault);
    throw;
  }
  fs::rename(unfinished, path, fault);
  require(!fault, "cannot write ", path, ": ", fault.message());
}

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) {
    quoted += letter == '\'' ? std::string("''") : std::string(1, letter);
  }
  return quoted + "'";
}

}  // namespace reformer::cli
