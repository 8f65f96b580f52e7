#!/usr/bin/env bash
# Do two ranks of one thread train as fast as one rank of two threads? CPU,
# Gloo, 3 layers 512/2048, 16K tokens a rank; wants two quiet cores.
#
#   bench/ranks.sh [PROGRAM]
#
# Prints a JSON row of each, and the quotient of their tokens a second.
set -euo pipefail
program=${1:-build/reformer}
common=(bench train --json --device cpu --repeats 3 --length 16384 --batch 2)
one=$("$program" "${common[@]}" --threads 2 2>/dev/null)
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 10000))
RANK=1 LOCAL_RANK=1 "$program" "${common[@]}" --threads 1 >/dev/null 2>&1 &
two=$(RANK=0 LOCAL_RANK=0 "$program" "${common[@]}" --threads 1 2>/dev/null)
wait
printf '%s\n%s\n' "$one" "$two"
printf '%s\n%s\n' "$one" "$two" | python3 -c '
import json, sys
one, two = (json.loads(line)["tokens_per_s"] for line in sys.stdin)
print(f"2 ranks of 1 thread: {two / one:.3f} of 1 rank of 2 threads")'
