// Stands in for ../archive.cpp where CMake found no libarchive.
#include "reformer/data/archive.h"

#include "reformer/base/errors.h"

namespace reformer {

void for_each_in_archive(const std::string& path, ByteStream&,
                         const VisitMember&) {
  throw Error("cannot read " + path +
              ": this program was built without libarchive; unpack it by hand, "
              "or install libarchive-dev and zlib1g-dev, and build again");
}

}  // namespace reformer
