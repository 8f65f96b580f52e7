#!/usr/bin/env bash
# Everything of the Python package that needs a GPU, on a machine without
# network: runs the tests with CUDA, and measures.
#
#   python/benchmarks/gpu.sh [--built FILE] OUT [tests] [attention] [train]
#                            [models]
#
# python3 has torch 2.11 with CUDA, for all of it transformers, too. OUT gets a
# log and lines of JSON of each step; without further arguments `attention` and
# `train` are done, in less than 100 seconds. Each has a time limit of its own
# (LIMIT=seconds: another). A table of what they have to reach comes last.
#
# Without --built, program and package are built here by CMake alone: cmake,
# ninja and nvcc are there. FILE, built elsewhere, is what pack.sh wrote.
set -euo pipefail
built=
if [ "${1:-}" = --built ]; then
  built=$(realpath "$2")
  shift 2
fi
[ $# -ge 1 ] || { echo "usage: gpu.sh [--built FILE] OUT [STEP]..." >&2; exit 2; }
out=$(mkdir -p "$1" && realpath "$1")
shift
cd "$(dirname "$0")/../.."
wanted=${*:-attention train}
root=$PWD

torch=$(python3 cmake/find_torch.py)
[ -n "$torch" ] || { echo "python3 has no torch 2.11" >&2; exit 1; }

# The package, without pip: a library and Python files in one folder. Only the
# GPU's own machine code: half the time of nvcc.
build() {
  local architecture
  architecture=$(python3 -c 'import torch
print("%d%d" % torch.cuda.get_device_capability())')
  cmake -S . -B build/python-cmake -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DREFORMER_PYTHON=ON -DREFORMER_CUDA=ON -DREFORMER_TORCH="$torch" \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture-real"
  cmake --build build/python-cmake
  cmake --install build/python-cmake --component python --prefix build/python
  [ -x build/reformer ] ||
    cmake --preset release -DREFORMER_TORCH="$torch" \
      -DCMAKE_CUDA_ARCHITECTURES="$architecture-real"
  cmake --build --preset release --target cli huggingface_logits
}
if [ -n "$built" ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar -xzf "$built" -C "$unpacked"
  built=$unpacked
else
  build >"$out/build.log"
  built=$root/build
fi
export REFORMER_BUILD=$built PYTHONPATH=$built/python:$built/site
# Programs that were built elsewhere look for LibTorch there.
export LD_LIBRARY_PATH=$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# step NAME SECONDS COMMAND: what it prints goes to OUT/NAME.log, too.
step() {
  local name=$1 limit=${LIMIT:-$2} begin=$SECONDS status=0
  shift 2
  [[ " $wanted " == *" $name "* ]] || return 0
  (cd "$out" && timeout "$limit" "$@") 2>&1 | tee "$out/$name.log" || status=$?
  [ $status != 124 ] || echo "$name: stopped after $limit s"
  echo "$name: status $status, $((SECONDS - begin)) s"
}
benchmarks=$root/python/benchmarks
program=(--program "$built/reformer")
tests=$root/python/tests  # those that need a GPU most come first
step tests 90 python3 -m pytest -q -p no:cacheprovider \
  "$tests"/test_{operators,interface,modules,examples,huggingface}.py
step attention 40 python3 "$benchmarks/attention.py" --device cuda "${program[@]}"
step train 56 python3 "$benchmarks/huggingface.py" train --repeats 2 \
  "${program[@]}"
step models 150 python3 "$benchmarks/models.py" "${program[@]}"
python3 "$benchmarks/bars.py" "$out"/*.log
