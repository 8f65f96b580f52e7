#include "cli/serve/loopback.h"

#include <arpa/inet.h>

#include <cstdint>

namespace reformer::cli {

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24 == 127;
}

}  // namespace reformer::cli
