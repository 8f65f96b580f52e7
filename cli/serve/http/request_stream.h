// The bytes of one request and its answer, within limits of size and of time.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <functional>
#include <utility>

namespace reformer::cli {

// Whether the server is being stopped: then nobody is waited for.
using Stopping = std::function<bool()>;

// The library's own stream, which is as slow and as long as its client likes,
// with an end: a head has kMostHead bytes at most, nobody is silent for longer
// than `silence`, and a request is there after that and a second more for each
// kLeastRate bytes of it. In a stop nothing more is read, and written what the
// client takes at once.
class RequestStream : public httplib::Stream {
 public:
  static constexpr size_t kMostHead = size_t{32} << 10;
  static constexpr int64_t kLeastRate = int64_t{16} << 10;

  // The request begins now.
  RequestStream(socket_t socket, std::chrono::milliseconds silence,
                Stopping stopping)
      : socket_(socket), silence_(silence), stopping_(std::move(stopping)) {}

  // Whether a limit, or a stop, ended it: what follows is no other request.
  bool refused() const { return refused_; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  socket_t socket() const override { return socket_; }
  // Nobody asks where a client is.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}

 private:
  using Clock = std::chrono::steady_clock;

  ssize_t refuse();
  ssize_t fill();
  bool count(char c);

  socket_t socket_;
  std::chrono::milliseconds silence_;
  Stopping stopping_;
  Clock::time_point begin_ = Clock::now();
  std::array<char, 4096> buffer_;
  size_t at_ = 0;
  size_t end_ = 0;
  int64_t received_ = 0;
  size_t head_ = 0;  // bytes of it
  size_t line_ = 0;  // of its last line
  char last_ = 0;    // of these bytes
  bool in_head_ = true;
  bool refused_ = false;
};

// Whether the other end of a connection has closed it.
bool has_left(socket_t socket);

// Waits until there is something to read. Returns whether there is; in a stop
// there is nothing.
bool wait_readable(socket_t socket, std::chrono::milliseconds at_most,
                   const Stopping& stopping);

}  // namespace reformer::cli
