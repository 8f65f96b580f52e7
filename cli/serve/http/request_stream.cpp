#include "cli/serve/http/request_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace reformer::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{100};  // until a stop is noticed

// Looks once, whatever `stopping` says.
bool wait_for(socket_t socket, short event, milliseconds at_most,
              const Stopping& stopping) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  pollfd one{socket, event, 0};
  auto left = at_most;
  do {
    const int ready =
        ::poll(&one, 1, static_cast<int>(std::min(left, kPoll).count()));
    if (ready > 0) return true;
    left =
        std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
  } while (left > milliseconds(0) && !stopping());
  return false;
}

}  // namespace

bool wait_readable(socket_t socket, milliseconds at_most,
                   const Stopping& stopping) {
  return !stopping() && wait_for(socket, POLLIN, at_most, stopping);
}

bool has_left(socket_t socket) {
  char byte = 0;
  const auto n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 ||
         (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool RequestStream::is_readable() const {
  return at_ < end_ || wait_readable(socket_, silence_, stopping_);
}

bool RequestStream::is_writable() const {
  return wait_for(socket_, POLLOUT, silence_, stopping_) && !has_left(socket_);
}

ssize_t RequestStream::refuse() {
  refused_ = true;
  return -1;
}

// More bytes; 0: there are no more, -1: that was too slow, or it stops.
ssize_t RequestStream::fill() {
  const auto end =
      begin_ + silence_ + milliseconds(1000 * received_ / kLeastRate);
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - Clock::now());
  if (left <= milliseconds(0) ||
      !wait_readable(socket_, std::min(left, silence_), stopping_)) {
    return refuse();
  }
  const auto n = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  at_ = 0;
  end_ = static_cast<size_t>(std::max<ssize_t>(n, 0));
  received_ += static_cast<int64_t>(end_);
  return n;
}

// A byte of the head, which ends where the library sees an empty line: at
// "\r\n" alone. Lines that end otherwise it skips. Returns whether the byte is
// within the limit.
bool RequestStream::count(char c) {
  if (!in_head_) return true;
  if (++head_ > kMostHead) return false;
  const bool ends = c == '\n';
  in_head_ = !(ends && line_ == 1 && last_ == '\r');
  line_ = ends ? 0 : line_ + 1;
  last_ = c;
  return true;
}

ssize_t RequestStream::read(char* to, size_t size) {
  if (refused_) return -1;
  if (at_ == end_) {
    const auto n = fill();
    if (n <= 0) return n;
  }
  const size_t n = std::min(size, end_ - at_);
  for (size_t i = 0; i < n; ++i) {
    if (!count(buffer_[at_])) return refuse();
    to[i] = buffer_[at_++];
  }
  return static_cast<ssize_t>(n);
}

ssize_t RequestStream::write(const char* from, size_t size) {
  if (!is_writable()) return -1;
  return ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace reformer::cli
