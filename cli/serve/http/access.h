// Who may come.
#pragma once

#include <httplib.h>

#include <string>

namespace reformer::cli {

// Throws RequestError, 403, for a page of somebody else that is open in the
// same browser; own_host: where the server listens.
void check_origin(const httplib::Request& request, const std::string& own_host);

// Throws RequestError, 401, for who does not send it; empty: none is asked for.
void check_token(const httplib::Request& request, const std::string& token);

}  // namespace reformer::cli
