#include "reformer/data/data_identity.h"

#include <algorithm>

namespace reformer {
namespace {

const DataIdentity* of_setting(const std::vector<DataIdentity>& data,
                               const std::string& setting) {
  const auto found =
      std::find_if(data.begin(), data.end(),
                   [&](const auto& one) { return one.setting == setting; });
  return found == data.end() ? nullptr : &*found;
}

std::string described(const DataIdentity* data) {
  if (data == nullptr) return "nothing of its own";
  return std::to_string(data->bytes) + " bytes of hash " + data->hash;
}

}  // namespace

std::vector<DataIdentity> identities_of(const Bytes& data,
                                        const Bytes& validation) {
  std::vector<DataIdentity> identities = {
      {"task.data", data.size(), data.content_hash()}};
  if (&validation != &data) {
    identities.push_back(
        {"task.validation", validation.size(), validation.content_hash()});
  }
  return identities;
}

std::string changed_data(const std::vector<DataIdentity>& then,
                         const std::vector<DataIdentity>& now) {
  if (then.empty()) return "";
  for (const auto* side : {&now, &then}) {
    for (const auto& [setting, bytes, hash] : *side) {
      const auto* was = of_setting(then, setting);
      const auto* is = of_setting(now, setting);
      if (was != nullptr && is != nullptr && *was == *is) continue;
      return setting + " is " + described(is) + " and was " + described(was);
    }
  }
  return "";
}

}  // namespace reformer
