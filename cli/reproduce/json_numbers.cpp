#include "cli/reproduce/json_numbers.h"

#include <nlohmann/json.hpp>

#include "reformer/base/errors.h"
#include "reformer/base/printable.h"

namespace reformer::cli {
namespace {

using Json = nlohmann::ordered_json;

// A conversion of nlohmann-json's would cast what does not fit, which may be
// anything.
bool is_within(const Json& value, int64_t least, int64_t most) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(most) &&
           value.get<int64_t>() >= least;
  }
  return value.is_number_integer() && value.get<int64_t>() >= least &&
         value.get<int64_t>() <= most;
}

}  // namespace

int64_t whole_number_in(const Json& value, const std::string& name,
                        int64_t least, int64_t most) {
  require(is_within(value, least, most), name, ": a whole number from ", least,
          " to ", most, " is required, got ",
          printable(value.is_structured() ? value.type_name() : value.dump()));
  return value.get<int64_t>();
}

}  // namespace reformer::cli
