// Numbers of JSON that somebody may have changed by hand.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reformer::cli {

// `value`, a whole number from `least` to `most`. Throws Error that begins with
// `name` for anything else: 3.5, 1e30, "3", true.
int64_t whole_number_in(const nlohmann::ordered_json& value,
                        const std::string& name, int64_t least, int64_t most);

}  // namespace reformer::cli
