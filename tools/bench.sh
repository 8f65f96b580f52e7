#!/usr/bin/env bash
# tools/bench.sh BUILD_DIR [OPTION...]
#
# Measures attention with BUILD_DIR/reformer and draws its time against length,
# into BUILD_DIR/bench: attention.jsonl, attention.png, peak.jsonl. About two
# minutes on two cores. What `make bench` runs. OPTIONs are those of
# `reformer bench attention` and `reformer bench peak` alike.
#
# REFORMER_BENCH_LENGTHS       default 512,1024,...,65536
# REFORMER_BENCH_ROUNDS        default 1,4
# REFORMER_BENCH_EXACT_UP_TO   default 16384
set -euo pipefail

build=${1:?usage: tools/bench.sh BUILD_DIR [OPTION...]}
shift
sources=$(cd "$(dirname "$0")/../bench" && pwd)
script=$sources/attention.gnuplot
out=$build/bench
lengths=${REFORMER_BENCH_LENGTHS:-512,1024,2048,4096,8192,16384,32768,65536}
rounds=${REFORMER_BENCH_ROUNDS:-1,4}
exact_up_to=${REFORMER_BENCH_EXACT_UP_TO:-16384}

say() { echo "bench: $*"; }

# measure NAME OPTION...: results get their name only when complete.
measure() {
  local name=$1
  shift
  "$build/reformer" bench "$name" --json "$@" >"$out/$name.jsonl.part"
  mv "$out/$name.jsonl.part" "$out/$name.jsonl"
  say "results are in $out/$name.jsonl"
}

processor() {
  sed -n '/^model name/{s/[^:]*: //p;q}' /proc/cpuinfo
}

draw() {
  if ! command -v gnuplot >/dev/null; then
    say "no plot: gnuplot is missing (Debian package gnuplot-nox)"
    return
  fi
  python3 "$sources/attention_series.py" "$out/attention.jsonl" \
    >"$out/attention.series"
  local subject exact=
  subject=$(sed -n '1s/^# //p' "$out/attention.series")
  if grep -q '^"exact' "$out/attention.series"; then exact=exact; fi
  (cd "$out" &&
    gnuplot -d -c "$script" "$subject" "$(processor), $(nproc) cores" "$exact" \
      >attention.png.part && mv attention.png.part attention.png)
  say "plot is in $out/attention.png"
}

mkdir -p "$out"
measure attention --length "$lengths" --rounds "$rounds" \
  --exact-up-to "$exact_up_to" "$@"
draw
measure peak --length "${lengths##*,}" --rounds "$rounds" "$@"
