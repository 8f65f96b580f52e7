#!/bin/sh
# format_test.sh CLANG-FORMAT SOURCES: every source is as clang-format 14 would
# write it.
"$1" --version | grep -q 'version 14\.' || exit 77
cd "$2" && find reformer cli tests examples \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) \
  2>/dev/null | xargs "$1" --dry-run --Werror
