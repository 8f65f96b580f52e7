#include "cli/serve/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "cli/serve/http/request_stream.h"

namespace reformer::cli {
namespace {

using std::chrono::seconds;

constexpr int kWaiting = 512;
constexpr socket_t kNone = -1;

thread_local socket_t answered = kNone;

}  // namespace

bool client_has_left() { return answered != kNone && has_left(answered); }

void Server::let_many_wait() { ::listen(svr_sock_, kWaiting); }

bool Server::stopping() const { return svr_sock_ == INVALID_SOCKET; }

bool Server::wait_for_request(socket_t socket) const {
  return wait_readable(socket, seconds(keep_alive_timeout_sec_),
                       [this] { return stopping(); });
}

// Returns whether another request may follow.
bool Server::answer_next(socket_t socket, bool last) {
  RequestStream stream(socket, seconds(read_timeout_sec_),
                       [this] { return stopping(); });
  bool closed = false;
  return process_request(stream, last, closed, nullptr) && !closed && !last &&
         !stream.refused();
}

bool Server::process_and_close_socket(socket_t socket) {
  answered = socket;
  bool goes_on = true;
  for (size_t left = keep_alive_max_count_; goes_on && left > 0; --left) {
    goes_on = wait_for_request(socket) && answer_next(socket, left == 1);
  }
  answered = kNone;
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return true;
}

}  // namespace reformer::cli
