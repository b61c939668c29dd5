#!/usr/bin/env bash
# Makes a target again and again until it fails, or has passed as often as it was to be. The variables that narrow the
# target, such as PACKAGES, TESTFLAGS or SPECS, do so here, too. Usage: flakes.sh TARGET RUNS, where 0 is no limit.
set -euo pipefail

readonly target=$1 runs=$2
log=bin/test/flakes.log
mkdir -p bin/test
for ((run = 1; runs == 0 || run <= runs; run++)); do
  started=$SECONDS
  if ! make "$target" >"$log" 2>&1; then
    cat "$log"
    echo "flakes: run $run of 'make $target' failed after $((SECONDS - started)) s; the runs before it passed. Its output is in $log."
    exit 1
  fi
  echo "flakes: run $run of 'make $target' passed in $((SECONDS - started)) s"
done
