#!/usr/bin/env bash
# What gpu.sh takes to a machine with a GPU instead of building there:
#
#   python/benchmarks/pack.sh BUILD PACKAGE FILE.tar.gz
#
# BUILD has reformer and perhaps tests/huggingface_logits, PACKAGE is the folder
# reformer of the Python package, both compiled with CUDA. With the libraries
# that the programs need beyond LibTorch's and the C library, and Python's
# packages in BUILD/site where there are any: they come before that machine's
# own, so only those of plain Python, or compiled for its version.
set -euo pipefail
build=$1 package=$2 archive=$(realpath "$3")
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT

mkdir -p "$packed/programs" "$packed/lib" "$packed/python" "$packed/tests"
# The programs' own libraries must not be found by python3, which has others.
wrap() {
  [ -x "$build/$1" ] || return 0
  strip -o "$packed/programs/${1##*/}" "$build/$1"
  cat >"$packed/$1" <<'EOF'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/lib" ] || here=${here%/*}
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib exec "$here/programs/${0##*/}" "$@"
EOF
  chmod +x "$packed/$1"
}
wrap reformer
wrap tests/huggingface_logits
ldd "$build/reformer" | awk '$2 == "=>" {print $3}' |
  grep -v -E '/(torch|nvidia)/|/lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+)\.so' |
  xargs cp -L -t "$packed/lib"
cp -r "$package" "$packed/python/reformer"
[ ! -d "$build/site" ] || cp -r "$build/site" "$packed/site"
find "$packed" -name __pycache__ -prune -exec rm -r {} +
tar -czf "$archive" -C "$packed" .
du -h "$archive"
