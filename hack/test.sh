#!/usr/bin/env bash
# Runs `go test` with the given flags and packages, all of which are built once and alike, and ends with a summary: what
# was slow, what was skipped and why, and how many tests passed. `go vet` is left to the linter. After all tests, test/rights
# compares what API servers were asked for with what config/rbac grants.
set -euo pipefail

readonly reports=$PWD/bin/test/reports/go
export STOWAGE_TEST_AUDIT=$PWD/bin/test/audit
rm -rf "$reports" "$STOWAGE_TEST_AUDIT"
mkdir -p "$reports" "$STOWAGE_TEST_AUDIT"
hack/need.sh filesystems
# Linkers and tests end soon: they need a tenth less time where garbage is collected rarely.
export GOGC=${GOGC:-400}
readonly checkout="-X github.com/stowage-dev/stowage/test/harness/apiserver.repository=$PWD"
go build -buildvcs=false -o bin/ ./hack/testsummary ./hack/cleanmachine

# Most suites wait for an API server more than they compute, so there are more of them at once than processors.
status=0
GINKGO_NO_COLOR=TRUE STOWAGE_TEST_REPORTS=$reports bin/cleanmachine bin/gotestsum --format pkgname-and-test-fails --hide-summary all \
  --jsonfile "$reports/go-test.json" -- \
  -shuffle=on -vet=off -p "$(($(nproc) + 1))" -ldflags="-s -w $checkout" -timeout 20m "$@" || status=$?
if [[ $status == 0 && $EUID == 0 && $* == *./... && $* != *-run* && $* != *-skip* ]]; then
  STOWAGE_TEST_REQUESTS=$STOWAGE_TEST_AUDIT STOWAGE_TEST_AUDIT='' bin/gotestsum --format pkgname-and-test-fails --hide-summary all \
    --jsonfile "$reports/rights.json" -- -count=1 -vet=off -ldflags="-s -w $checkout" -run '^TestTheRights' ./test/rights || status=$?
fi
bin/testsummary "$reports" || status=$?
exit "$status"
