#!/usr/bin/env bash
# Do two ranks of one thread train as fast as one rank of two threads? CPU,
# Gloo, 3 layers 512/2048, 16K tokens a rank; wants two quiet cores.
#
#   bench/ranks.sh [PROGRAM] [TURNS] [STEPS]
#
# In turn, TURNS times each, of STEPS timed steps. Prints a JSON row of each,
# and the quotient of the medians of their tokens a second.
set -euo pipefail
program=${1:-build/reformer}
turns=${2:-3}
common=(bench train --json --device cpu --repeats "${3:-3}" --length 16384 --batch 2)

one_rank() { "$program" "${common[@]}" --threads 2 2>/dev/null; }

two_ranks() (
  export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
  export MASTER_PORT=$((20000 + RANDOM % 10000))
  RANK=1 LOCAL_RANK=1 "$program" "${common[@]}" --threads 1 >/dev/null 2>&1 &
  RANK=0 LOCAL_RANK=0 "$program" "${common[@]}" --threads 1 2>/dev/null
  wait
)

for ((turn = 0; turn < turns; ++turn)); do
  one_rank
  two_ranks
done | python3 -c '
import json, statistics, sys
found = {1: [], 2: []}
for line in sys.stdin:
    print(line, end="")
    row = json.loads(line)
    found[row["ranks"]].append(row["tokens_per_s"])
one, two = (statistics.median(found[ranks]) for ranks in (1, 2))
print(f"2 ranks of 1 thread: {two / one:.3f} of 1 rank of 2 threads")'
