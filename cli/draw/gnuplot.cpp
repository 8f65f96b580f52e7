#include "cli/draw/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "reformer/base/atomic_file.h"
#include "reformer/base/errors.h"
#include "reformer/base/printable.h"

extern char** environ;

namespace reformer::cli {
namespace {

namespace fs = std::filesystem;

bool is_svg(const std::string& path) {
  return fs::path(path).extension() == ".svg";
}

Script terminal_of(const std::string& path, PlotSize size) {
  Script script;
  script << "set encoding utf8\nset terminal ";
  if (is_svg(path)) {
    script << "svg background rgb 'white'";
  } else {
    script << "pngcairo";
  }
  return script << " noenhanced size " << size.width << "," << size.height
                << " font 'Sans,13' linewidth 1.5\n";
}

// gnuplot itself does not look whether all of it could be written.
bool is_whole(std::string_view plot, bool svg) {
  using namespace std::string_view_literals;
  if (!svg) {
    return plot.starts_with("\x89PNG\r\n\x1A\n"sv) &&
           plot.ends_with("IEND\xAE\x42\x60\x82"sv);
  }
  const size_t end = plot.find_last_not_of(" \n");
  return plot.substr(0, end + 1).ends_with("</svg>");
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
  const bool written = std::fwrite(contents.data(), 1, contents.size(),
                                   file.get()) == contents.size() &&
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

// Both ends; a child has what it is given and no more.
class Pipe {
 public:
  Pipe() {
    require(pipe2(ends_, O_CLOEXEC) == 0,
            "cannot make a pipe: ", std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int to_write() const { return ends_[1]; }

  // All that the child writes, until it has closed its end.
  std::string read_all() {
    close_end(1);
    std::string all;
    char part[65536];
    for (;;) {
      const ssize_t size = ::read(ends_[0], part, sizeof part);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return all;
      all.append(part, static_cast<size_t>(size));
    }
  }

 private:
  void close_end(int which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

  int ends_[2] = {-1, -1};
};

struct Streams {
  int input;
  int output;
  int complaints;
};

// Returns spawn's error, or 0 and the process.
int spawn_gnuplot(const Streams& streams, pid_t& process) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, streams.input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, streams.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, streams.complaints, STDERR_FILENO);
  char program[] = "gnuplot";
  char no_user_settings[] = "-d";
  char* arguments[] = {program, no_user_settings, nullptr};
  const int fault =
      posix_spawnp(&process, program, &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  return fault;
}

// What it writes to standard output: a name of a file would be one more text
// that it could take for a command.
std::string output_of_gnuplot(const std::string& script) {
  const TemporaryFile input = temporary_file(script);
  const TemporaryFile complaints = temporary_file();
  Pipe output;
  pid_t process = 0;
  const int fault = spawn_gnuplot(
      {fileno(input.get()), output.to_write(), fileno(complaints.get())},
      process);
  require(fault != ENOENT,
          "gnuplot is missing; install it with: sudo apt-get install "
          "gnuplot-nox");
  require(fault == 0, "cannot run gnuplot: ", std::strerror(fault));
  std::string written = output.read_all();
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  require(status == 0,
          "gnuplot failed: ", printable(last_line_of(complaints.get())));
  return written;
}

}  // namespace

void check_plot_path(const std::string& path) {
  require(is_svg(path) || fs::path(path).extension() == ".png",
          "a plot's name must end in .png or .svg, got '", path, "'");
  const fs::path folder = fs::absolute(path).parent_path();
  require(fs::is_directory(folder), "cannot write ", path, ": ",
          folder.string(), " is no folder");
}

void draw_plot(const Script& script, const std::string& path, PlotSize size) {
  check_plot_path(path);
  Script whole = terminal_of(path, size);
  whole << script << "\nset output\n";
  const std::string plot = output_of_gnuplot(whole);
  require(is_whole(plot, is_svg(path)), "gnuplot failed: what it drew for ",
          path, " is no whole plot");
  write_file_atomically(path, plot);
}

}  // namespace reformer::cli
