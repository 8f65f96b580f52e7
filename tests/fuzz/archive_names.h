// Archives of every kind, as seeds: a byte that chooses the name, then one.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/formats/archive_writer.h"

namespace reformer::fuzz {

inline constexpr std::array<const char*, 11> kArchiveNames = {
    "a.zip",     "a.npz", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.zst",
    "a.tar.bz2", "a.gz",  "a.xz",  "a.zst",    "a.bz2"};

inline std::string seed_of(size_t choice, const Members& members) {
  const std::string name = kArchiveNames[choice];
  const bool one =
      name == "a.gz" || name == "a.xz" || name == "a.zst" || name == "a.bz2";
  return static_cast<char>(choice) +
         (one ? compressed_bytes(name, members[0].second)
              : archive_bytes(name, members));
}

inline std::vector<std::string> archive_seeds() {
  std::vector<std::string> seeds;
  const Members members = {{"a.txt", "hello"}, {"b/", ""}, {"b/c", "world"}};
  for (size_t i = 0; i < kArchiveNames.size(); ++i) {
    seeds.push_back(seed_of(i, members));
  }
  return seeds;
}

}  // namespace reformer::fuzz
