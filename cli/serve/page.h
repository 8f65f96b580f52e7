// The page's files, which the program carries inside it.
#pragma once

#include <string>
#include <vector>

namespace reformer::cli {

struct PageFile {
  std::string name;  // "page.js"
  std::string contents;
};

// The files of cli/serve/page, by cmake/embed_page.sh.
std::vector<PageFile> page_files();

}  // namespace reformer::cli
