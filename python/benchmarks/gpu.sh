#!/usr/bin/env bash
# Everything of the Python package that needs a GPU, on a machine without
# network: builds program and package by CMake alone, runs the tests with CUDA,
# and measures.
#
#   python/benchmarks/gpu.sh OUT [tests] [attention] [train]
#
# python3 has torch 2.11 with CUDA, for all of it pytest and transformers, too;
# cmake, ninja and nvcc are there. OUT gets a log and lines of JSON. Without
# further arguments all three are done.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mkdir -p "$1" && realpath "$1")
shift
wanted=${*:-tests attention train}
wants() { [[ " $wanted " == *" $1 "* ]]; }

torch=$(python3 cmake/find_torch.py)
[ -n "$torch" ] || { echo "python3 has no torch 2.11" >&2; exit 1; }

# The package, without pip: a library and Python files in one folder. Only the
# GPU's own machine code: half the time of nvcc.
architecture=$(python3 -c 'import torch
print("%d%d" % torch.cuda.get_device_capability())')
cmake -S . -B build/python-cmake -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DREFORMER_PYTHON=ON -DREFORMER_CUDA=ON -DREFORMER_TORCH="$torch" \
  -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" >"$out/build.log"
cmake --build build/python-cmake >>"$out/build.log"
cmake --install build/python-cmake --component python \
  --prefix build/python-package >>"$out/build.log"
export PYTHONPATH=$PWD/build/python-package

if [ ! -x build/reformer ]; then
  cmake --preset release -DREFORMER_TORCH="$torch" \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" >>"$out/build.log"
fi
cmake --build --preset release --target cli huggingface_logits \
  >>"$out/build.log"

root=$PWD
if wants tests; then
  (cd "$out" && REFORMER_BUILD=$root/build python3 -m pytest -q \
    -p no:cacheprovider "$root/python/tests" 2>&1 | tee "$out/tests.log") ||
    echo "tests failed: $out/tests.log" >&2
fi
if wants attention; then
  (cd "$out" && python3 "$root/python/benchmarks/attention.py" --device cuda \
    --program "$root/build/reformer" | tee "$out/attention.jsonl") ||
    echo "attention.py failed" >&2
fi
if wants train; then
  (cd "$out" && python3 "$root/python/benchmarks/huggingface.py" train \
    --program "$root/build/reformer" | tee "$out/train.jsonl") ||
    echo "huggingface.py failed" >&2
fi
