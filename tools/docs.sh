#!/usr/bin/env bash
# tools/docs.sh BUILD: API pages of the public headers, the documents, and a page
# of all settings, in BUILD/docs/html. Any warning of Doxygen's is an error.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/.."

export REFORMER_DOCS=$build/docs REFORMER_VERSION
REFORMER_VERSION=$("$build/reformer" --version | cut -d ' ' -f 2)
rm -rf "$REFORMER_DOCS"
mkdir -p "$REFORMER_DOCS/pages"
{
  printf '# All settings\n\n'
  "$build/reformer" settings --markdown
} >"$REFORMER_DOCS/pages/settings.md"
doxygen docs/Doxyfile
echo "the pages are $REFORMER_DOCS/html/index.html"
