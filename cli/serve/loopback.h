// Hosts that are this machine alone.
#pragma once

#include <string>

namespace reformer::cli {

// "localhost", an IPv4 address of 127.0.0.0/8, or IPv6's, in brackets or not.
bool is_loopback(const std::string& host);

}  // namespace reformer::cli
