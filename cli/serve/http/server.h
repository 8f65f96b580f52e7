// The library's server, with limits that it lacks.
#pragma once

#include <httplib.h>

namespace reformer::cli {

class Server : public httplib::Server {
 public:
  // The library lets 5 connections wait for this thread, and a busy machine
  // resets the others.
  void let_many_wait();

 private:
  // Requests of one connection, each a RequestStream.
  bool process_and_close_socket(socket_t socket) override;
  bool answer_next(socket_t socket, bool last);
  bool stopping() const;
  bool wait_for_request(socket_t socket) const;
};

// Whether the client has gone away whose request this thread answers.
bool client_has_left();

}  // namespace reformer::cli
