#!/bin/sh
# Writes a source file that holds the files of a page as strings.
#
#   embed_page.sh OUTPUT FILE...
set -eu

output=$1
shift
{
  echo '// Made by cmake/embed_page.sh.'
  echo '#include "cli/serve/page.h"'
  echo 'std::vector<reformer::cli::PageFile> reformer::cli::page_files() {'
  echo '  return {'
  for file; do
    printf '{"%s", R"embedded_page(' "$(basename "$file")"
    cat "$file"
    echo ')embedded_page"},'
  done
  echo '  };'
  echo '}'
} >"$output"
