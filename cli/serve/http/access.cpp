#include "cli/serve/http/access.h"

#include "cli/serve/completion_request.h"
#include "cli/serve/loopback.h"
#include "reformer/base/json_text.h"

namespace reformer::cli {
namespace {

// Takes as long for a wrong token as for the right one.
bool same(const std::string& a, const std::string& b) {
  size_t differs = a.size() ^ b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<size_t>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  }
  return differs == 0;
}

// The host without its port: "[::1]" of "[::1]:8080".
std::string name_in(const std::string& host) {
  const size_t bracket = host.find(']');
  const size_t colon =
      host.find(':', bracket == std::string::npos ? 0 : bracket);
  return host.substr(0, colon);
}

}  // namespace

// Neither by its own address, nor by a name of its own for this machine.
void check_origin(const httplib::Request& request,
                  const std::string& own_host) {
  const std::string host = request.get_header_value("Host");
  const std::string name = name_in(host);
  const bool known = host.empty() || !is_loopback(own_host) ||
                     is_loopback(name) || name == own_host;
  if (!known) {
    throw RequestError(
        403, "",
        "this server is for this machine alone, not for " + shortened(host));
  }
  const std::string origin = request.get_header_value("Origin");
  const bool own = origin.empty() || origin == "http://" + host ||
                   origin == "https://" + host;
  if (!own || request.get_header_value("Sec-Fetch-Site") == "cross-site") {
    throw RequestError(403, "",
                       "requests of other pages are refused" +
                           (origin.empty() ? "" : ": " + shortened(origin)));
  }
}

void check_token(const httplib::Request& request, const std::string& token) {
  if (token.empty()) return;
  const std::string given = request.get_header_value("Authorization");
  if (same(given, "Bearer " + token)) return;
  throw RequestError(401, "",
                     given.empty()
                         ? "a token is required: Authorization: Bearer TOKEN"
                         : "the token is another one");
}

}  // namespace reformer::cli
