// Where CMake found no cpp-httplib.
#include "cli/serve/http_server.h"
#include "reformer/base/errors.h"

namespace reformer::cli {

void require_http() {
  throw Error(
      "serve: this program was built without an HTTP library: install "
      "libcpp-httplib-dev (tools/setup does) and build it again");
}

void serve_http(const ServedModel&, Engine&, const HttpOptions&) {
  require_http();
}

}  // namespace reformer::cli
