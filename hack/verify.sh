#!/usr/bin/env bash
# Fails, and says what to do, where a generated file is stale, a file isn't formatted, a module isn't tidy, a package is
# larger than the measures allow, or a word stands that hack/words/words.txt keeps out.
# It compares with the files as they lie here, committed or not; stale ones are up to date when it ends.
#
# Usage: verify.sh MODULE...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() { echo "verify: $*" >&2; failed=1; }

generated_files() {
  find api -name 'zz_generated*.go'
  find config/crd -name 'stowage.dev_*.yaml'
  find config/rbac/role.yaml config/rbac/cluster-scope/role.yaml config/rbac/node_agent_role.yaml docs/api.md 2>/dev/null || true
}

checksums() { generated_files | sort | xargs -d '\n' sha256sum; }

verify_generated() {
  local before stale
  before=$(checksums)
  hack/generate.sh
  stale=$(diff <(echo "$before") <(checksums) | awk '/^[<>]/ {print "  " $3}' | sort -u) || true
  [[ -z $stale ]] || complain "these files were stale and are generated again, look at them and commit them:"$'\n'"$stale"
}

verify_format() {
  local unformatted
  unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs -d '\n' gofmt -l)
  [[ -z $unformatted ]] || complain "run 'make fmt', these files aren't formatted:"$'\n'"$unformatted"
}

verify_modules() {
  local module difference
  for module; do
    difference=$(go -C "$module" mod tidy -diff 2>&1) ||
      complain "run 'go mod tidy' in $module, its go.mod or go.sum isn't tidy:"$'\n'"$(grep -v '^go: downloading' <<<"$difference" | head -20)"
  done
}

# What a go.mod requires, with the versions that its replacements have.
requirements() {
  awk '$2 == "=>" {version[$1] = $4} $1 ~ /[.]/ && $2 ~ /^v/ {version[$1] = version[$1] ? version[$1] : $2}
    END {for (path in version) print path, version[path]}' "$1/go.mod" | sort
}

# A library that programs share is compiled once if each has the same version of it, and of what it imports itself.
# Kubernetes' own programs keep the versions of their release.
verify_shared() {
  local module different
  for module in hack/tools hack/gcedriver hack/sidecars test/chart; do
    different=$(join <(requirements .) <(requirements "$module") | awk '$2 != $3 {print "  " $1 ": " $2 " and " $3}')
    [[ -z $different ]] || complain "run 'go get' until go.mod and $module/go.mod have the same versions:"$'\n'"$different"
  done
}

verify_measures() {
  go run -buildvcs=false ./hack/measures hack/measures/beyond.txt || complain "split what is beyond the measures"
}

verify_words() {
  go run -buildvcs=false ./hack/words hack/words/words.txt || complain "take the better words, or shorten the list's line unclean"
}

verify_generated
verify_format
verify_measures
verify_words
verify_modules "$@"
verify_shared
((failed == 0)) && echo "verify: generated files, formatting and modules are up to date, and measures and words hold"
exit "$failed"
