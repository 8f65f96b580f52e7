#include "cli/serve/http/answers.h"

#include "cli/serve/completion_json.h"

namespace reformer::cli {

void put_error(httplib::Response& response, int status,
               const std::string& sentence, const std::string& key) {
  response.status = status;
  if (status == 429) response.set_header("Retry-After", "1");
  response.set_content(error_text(status, sentence, key), kJson);
}

void put_json(httplib::Response& response, const nlohmann::ordered_json& json) {
  response.set_header("Cache-Control", "no-store");
  response.set_content(json_text(json), kJson);
}

}  // namespace reformer::cli
