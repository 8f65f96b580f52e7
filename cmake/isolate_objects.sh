#!/bin/sh
# isolate_objects.sh ISA OUT OBJECT...
#
# Merges objects that were compiled for one instruction set, and hides their
# copies of functions that do not belong to its namespace, such as
# std::vector<int>::resize. The linker keeps any one copy of such a function for
# the whole program: were it the AVX-512 one, other code would call it on
# processors that have no AVX-512. Data stays shared: there must be one copy.
set -e
isa=$1 out=$2
shift 2
"${LD:-ld}" -r --force-group-allocation -o "$out" "$@"
# The first line is for objcopy, which fails on an empty list.
"${NM:-nm}" --defined-only "$out" | awk -v isa="cpu${#isa}$isa" '
  BEGIN { print "# functions hidden by isolate_objects.sh" }
  $2 == "W" && !index($3, isa) { print $3 }' >"$out.hidden"
"${OBJCOPY:-objcopy}" --localize-symbols="$out.hidden" "$out"
