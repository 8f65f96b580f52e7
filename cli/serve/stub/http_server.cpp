// Where CMake found no cpp-httplib, or none of a version that it takes.
#include "cli/serve/http_server.h"
#include "reformer/base/errors.h"

namespace reformer::cli {

void require_http() {
  throw Error(
      "serve: this program was built without an HTTP library: install "
      "libcpp-httplib-dev (tools/setup does), 0.11 to 0.14, and build it "
      "again");
}

void serve_http(const ServedModel&, Engine&, const HttpOptions&) {
  require_http();
}

}  // namespace reformer::cli
