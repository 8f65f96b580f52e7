#!/usr/bin/env bash
# demo.sh BUILD: trains a small Reformer on the paper's duplication task
# (repeat a sequence of tokens), evaluates it with more and fewer hash rounds
# than it was trained with, and draws how the loss fell and what
# the model attends to.
set -euo pipefail
build=${1:?usage: demo.sh BUILD}
run=$build/demo/duplication
rm -rf "$run"
mkdir -p "$build/demo"

echo "demo: training a small Reformer to repeat a sequence, a minute or two on 2 cores"
"$build/reformer" train duplication-small --out "$run"
echo
echo "demo: accuracy by hash rounds at evaluation (trained with 4)"
"$build/reformer" eval "$run" --split test --rounds 1,2,4,8 2>/dev/null
echo
if command -v gnuplot >/dev/null; then
  "$build/reformer" plot "$run" --out "$build/demo/loss.png"
  "$build/reformer" plot "$run" --attention --out "$build/demo/attention.png"
fi
cat <<EOF

What to try next:
  $build/reformer train text --data YOUR_FILE --out runs/text    your own text
  $build/reformer bench attention                                LSH against exact attention
  $build/reformer --help                                         everything else

This model in a browser, and what it looks at:
  $build/reformer serve $run
EOF
