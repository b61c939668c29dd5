#!/bin/bash
# Fuzzes each parser of what pods, users, servers and disks wrote, for FUZZTIME each
# (default 30s). PACKAGES narrows it. A new finding is left in the package's testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A targets
while IFS=: read -r file target; do
  targets["$(dirname "$file")"]+=" $target"
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' ${PACKAGES:-api cmd controllers internal test} | sed 's/:func /:/')
for package in $(printf '%s\n' "${!targets[@]}" | sort); do
  for target in ${targets[$package]}; do
    echo "fuzz: ./$package $target"
    CGO_ENABLED=0 go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}"
  done
done
