// What answers have in common.
#pragma once

#include <httplib.h>

#include <nlohmann/json.hpp>
#include <string>

namespace reformer::cli {

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kEvents = "text/event-stream";

// {"error": …} of completion_json.h; key: of the body's, at fault.
void put_error(httplib::Response& response, int status,
               const std::string& sentence, const std::string& key = "");

// Not to be kept by anybody.
void put_json(httplib::Response& response, const nlohmann::ordered_json& json);

}  // namespace reformer::cli
