#include "cli/process/line_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/process/stop_signal.h"
#include "cli/screen/output.h"
#include "reformer/base/errors.h"

namespace reformer::cli {
namespace {

constexpr const char* kAsk = "> ";
constexpr const char* kHowToLeave = "\n(Ctrl-D ends the session)\n";

[[noreturn]] void throw_unreadable(const std::string& name) {
  throw Error("cannot read " + name + ": " + std::strerror(errno));
}

}  // namespace

LineInput::LineInput()
    : file_(STDIN_FILENO),
      name_("standard input"),
      typed_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
  stop_requested();  // installs the handlers
}

LineInput::LineInput(const std::string& path)
    : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      name_(path),
      typed_(false) {
  if (file_ < 0) throw_unreadable(name_);
  stop_requested();
}

LineInput::~LineInput() {
  if (file_ > STDERR_FILENO) close(file_);
}

// Until there is something to read; whether there will be. A signal ends poll,
// which read may not notice.
bool LineInput::wait() {
  pollfd input{file_, POLLIN, 0};
  constexpr int kMilliseconds = 200;  // for a signal just before poll
  while (true) {
    if (stop_requested()) {
      if (!typed_ || stop_signal() != SIGINT) return false;
      forget_stop();
      buffer_.clear();
      print(std::string(kHowToLeave) + kAsk);
    }
    const int ready = poll(&input, 1, kMilliseconds);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_unreadable(name_);
  }
}

bool LineInput::is_ready() const {
  pollfd input{file_, POLLIN, 0};
  return poll(&input, 1, /*milliseconds=*/0) > 0;
}

bool LineInput::fill() {
  if (!wait()) return false;
  char bytes[4096];
  ssize_t n = -1;
  do {
    n = read(file_, bytes, sizeof bytes);
  } while (n < 0 && errno == EINTR);
  if (n < 0) throw_unreadable(name_);
  buffer_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

std::string LineInput::taken(size_t n, size_t with_end) {
  auto line = buffer_.substr(0, n);
  buffer_.erase(0, with_end);
  return line;
}

std::optional<std::string> LineInput::next() {
  if (typed_) print(kAsk);
  size_t end = buffer_.find('\n');
  while (end == std::string::npos && !at_end_) {
    const size_t before = buffer_.size();
    at_end_ = !fill();
    end = buffer_.find('\n', buffer_.size() < before ? 0 : before);
  }
  if (end != std::string::npos) return taken(end, end + 1);
  if (typed_ && buffer_.empty()) print("\n");  // after the mark of the question
  if (buffer_.empty() || stop_requested()) return std::nullopt;
  return taken(buffer_.size(), buffer_.size());
}

std::vector<std::string> LineInput::next_lines(std::size_t most) {
  std::vector<std::string> lines;
  auto line = next();
  while (line) {
    lines.push_back(std::move(*line));
    if (typed_ || lines.size() >= most) break;
    while (buffer_.find('\n') == std::string::npos && !at_end_ && is_ready()) {
      at_end_ = !fill();
    }
    const bool there = buffer_.find('\n') != std::string::npos || at_end_;
    line = there ? next() : std::nullopt;
  }
  return lines;
}

}  // namespace reformer::cli
