// Sources decoded once: the second time their cache is there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reformer/data/cache_file.h"
#include "reformer/data/collection.h"

namespace reformer {

// What is told while a source is decoded; the library itself prints nothing.
class DecodeObserver {
 public:
  virtual ~DecodeObserver() = default;
  // Bytes of the source's files, read and in all. What it throws ends the
  // decoding.
  virtual void decoding(const std::string& /*source*/, int64_t /*done*/,
                        int64_t /*size*/) {}
  virtual void warned(const std::string& /*sentence*/) {}
  // Something that takes its time begins: "making a tokenizer ...".
  virtual void began(const std::string& /*what*/) {}
};

struct CacheRequest {
  std::string folder;  // empty: default_cache_folder()
  std::string source;  // a file, a folder or an archive
  std::string form;    // what it is decoded into: another form, another cache
  std::vector<std::string> files = {};  // that the source is; none: itself
};

// What goes beside the payload, which `append` takes.
struct Decoded {
  std::string labels;
  int64_t skipped = 0;
};
using AppendPayload = std::function<void(std::span<const uint8_t>)>;
using Decode = std::function<Decoded(Collection&, const AppendPayload&)>;

// The cache of request.source, which `decode` fills where there is none yet or
// the source has changed since. Of several processes that want it at once, one
// decodes and the others wait for it. Throws Error when the source cannot be
// read, the folder not written, or nothing was decoded.
std::shared_ptr<const CacheFile> cached(const CacheRequest& request,
                                        const Decode& decode,
                                        DecodeObserver& observer);

// $XDG_CACHE_HOME/reformer, or ~/.cache/reformer.
std::string default_cache_folder();

}  // namespace reformer
