# The front door. Each target does all the set-up it needs, and nothing twice.
# Underneath are CMake presets (CMakePresets.json), for editors and for
# everything finer than this.

JOBS ?= $(shell nproc)
# Warnings are errors in CI alone: a newer compiler must not stop a user.
WERROR := $(if $(CI),ON,OFF)

# Every time, since it takes half a second and the settings may have changed;
# only warnings, errors and the first finding of LibTorch are worth a line.
configure = @cmake -DREFORMER_WERROR=$(WERROR) >/dev/null --preset
build = @cmake --build --parallel $(JOBS) --preset

# Inputs for each fuzzer.
RUNS ?= 1000000

.PHONY: all demo docs test test-asan test-tsan fuzz bench format lint clean help
.PHONY: setup test-browser python-test
.DEFAULT_GOAL := all

all: setup  ## build build/reformer and the library (this is plain `make`)
	$(configure) release
	$(build) release --target cli

test: setup  ## build and run all tests
	@tools/setup safetensors openai gnuplot mpirun
	$(configure) release
	$(build) release
	@ctest --preset release

test-asan: setup  ## run the tests under address and undefined sanitizers
	$(configure) asan
	$(build) asan --target test_programs --target cli
	@ctest --preset asan

test-tsan: setup  ## run what has threads under the thread sanitizer
	$(configure) tsan
	$(build) tsan --target kernel_tests model_tests distributed_tests
	@ctest --preset tsan

test-browser: setup  ## install Chromium, and test the page of `serve` in it
	@tools/setup browser
	$(configure) release
	$(build) release --target cli
	@ctest --preset release -R '^serve_browser$$' --output-on-failure

python-test: setup  ## build the Python package in an environment, test it
	@tools/setup python-venv
	$(configure) release
	$(build) release --target cli huggingface_logits
	@tools/python_test build $(TESTS)

fuzz: all  ## fuzz all readers with clang (RUNS=1000000, TARGET=npy)
	@tools/setup clang
	$(configure) fuzz
	$(build) fuzz
	@nice python3 tests/fuzz/run.py build/fuzz --runs $(RUNS) --jobs $(JOBS) \
	  $(TARGET:%=--target %)

demo: all  ## train a small Reformer, evaluate it, draw its loss
	@tools/setup gnuplot
	@tools/demo.sh build

bench: all  ## time attention against length; plot in build/bench
	@tools/setup gnuplot
	@tools/bench.sh build

docs: all  ## write build/docs/html: the library's API, documents, settings
	@tools/setup doxygen
	@tools/docs.sh build

setup:  ## install what is missing: Debian packages, LibTorch
	@tools/setup

format:  ## clang-format all sources in place
	@tools/setup clang-format
	@git ls-files -co --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' \
	  | xargs clang-format -i

lint: setup  ## check formatting, layers, documents; clang-tidy what changed
	@tools/setup clang-format clang-tidy
	@tools/lint $(if $(ALL),all,$(SINCE))

clean:  ## remove build/ (LibTorch stays in third_party/)
	@rm -rf build

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1\t/p' Makefile | expand -t 20
