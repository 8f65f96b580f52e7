// Which bytes a run learns from, so that one that goes on can tell whether they
// are still the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reformer/data/bytes.h"

namespace reformer {

struct DataIdentity {
  std::string setting;  // "task.data"
  int64_t bytes = 0;
  std::string hash;  // of all of them: Bytes::content_hash
  bool operator==(const DataIdentity&) const = default;
};

// A split whose bytes are those of `task.data` adds nothing to them.
std::vector<DataIdentity> identities_of(const Bytes& data,
                                        const Bytes& validation);

// Names what has changed: which setting, how many bytes then and now. Empty
// where all is as it was, or nobody knows: checkpoints of older programs do not
// tell.
std::string changed_data(const std::vector<DataIdentity>& then,
                         const std::vector<DataIdentity>& now);

}  // namespace reformer
