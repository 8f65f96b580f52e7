// What a connection may ask for, whatever it asks for.
#pragma once

#include <httplib.h>

#include "cli/serve/engine.h"
#include "cli/serve/http_server.h"

namespace reformer::cli {

// Time-outs, sizes, how many connections; headers that every answer has; an
// answer to what is no request.
void set_limits(httplib::Server& server, const Engine& engine,
                const HttpOptions& options);

}  // namespace reformer::cli
