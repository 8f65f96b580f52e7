// Bitext: lines in one language, and their translations into another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reformer/data/cache.h"

namespace reformer {

// The letters of a pair's split.
enum class BitextSplit : char { kTrain = 't', kValidation = 'v', kTest = 'e' };

// By the name of the file that it is in: as split_named has it of images, and
// dev is validation, too ("val.en", "test_2016_flickr.de", "dev/a.tsv").
BitextSplit bitext_split_named(const std::string& name);

struct BitextRequest {
  // One of
  //   FILE,FILE     the source's lines, and as many of the target; packed ones
  //                 too (.gz, .xz, .zst, .bz2)
  //   PREFIX        that is PREFIX.SOURCE,PREFIX.TARGET, packed or not
  //   FILE          the source, a tab, the target, in each line
  //   a folder or an archive of such files: NAME.SOURCE and NAME.TARGET are
  //                 pairs, NAME.tsv has tabs (the target first where
  //                 TARGET-SOURCE is in its name); all others are left out
  std::string data;
  std::string source;  // language: "en"
  std::string target;
  std::string cache;  // folder; empty: default_cache_folder()
};

// The files of FILE,FILE or PREFIX; none where it is one file, folder or
// archive. Throws Error where nothing is there.
std::vector<std::string> bitext_files(const BitextRequest& request);

// The payload: lines in turns, of the source and of the target. The labels: a
// BitextSplit for each pair. Ends of lines may be \r\n; a byte order mark is
// left out. Throws Error for a file without its partner, unequal numbers of
// lines, a line of a .tsv without a tab, and where there is no pair.
std::shared_ptr<const CacheFile> open_bitext(const BitextRequest& request,
                                             DecodeObserver& observer);

struct LinePair {
  std::string source;
  std::string target;
};

// Reads the pairs of such a payload one after the other.
class BitextReader {
 public:
  explicit BitextReader(const Bytes& payload) : payload_(payload) {}

  // False at the end.
  bool next(LinePair& pair);

 private:
  bool next_line(std::string& line);

  const Bytes& payload_;
  int64_t at_ = 0;             // in the payload
  std::vector<uint8_t> part_;  // read of it
  size_t used_ = 0;            // of that
};

}  // namespace reformer
