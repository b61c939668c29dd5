#!/usr/bin/env bash
# Plays upstream's integration stories of PersistentVolumes with Stowage's manager in place of upstream's controller.
#
# The stories are those of the module k8s.io/kubernetes as go.mod requires it. Copies are made at build time, in which two
# imports are others: that of the controller, and that of its helpers. All else is upstream's, and nothing of it is
# committed. What can't be played is in skips.txt, each with its reason.
#
# Usage: play.sh PROGRAMS [EXPRESSION [skipped]]. PROGRAMS is the folder with etcd and kubectl, and EXPRESSION says which
# stories are played, as suite/Test. With the word skipped those of skips.txt are played, and no others.
set -euo pipefail

readonly suites=(volume volumescheduling) # packages below k8s.io/kubernetes/test/integration
readonly controller=k8s.io/kubernetes/pkg/controller/volume/persistentvolume helpers=k8s.io/kubernetes/test/integration/util
readonly here=github.com/stowage-dev/stowage/hack/upstream
# Most stories that wait for what never happens have no timeout of their own. Then they tell where they wait.
readonly timeout=480 last_words=20
declare -A reasons=()

fail() { echo "upstream: $*" >&2; exit 1; }

# A file with the other imports. All else stays as it is, to the byte.
rewrite() { sed -e "s#\"$controller\"#\"$here/persistentvolume\"#" -e "s#\"$helpers\"#\"$here/util\"#" "$@"; }

# Without it stories would be played with upstream's controller.
has_controller() { grep -q "\"$here/persistentvolume\"" "$@"; }

# The tests of files, as suite/Test.
stories() {
  local suite=$1
  shift
  sed -n "s#^func \(Test[A-Za-z0-9_]*\)(.*#$suite/\1#p" "$@" | grep -v '/TestMain$'
}

# Reads a line for each skip: the story, spaces, the reason.
read_skips() {
  local story reason
  while read -r story reason; do
    [[ -n $story && $story != '#'* ]] || continue
    [[ -n $reason ]] || fail "skips.txt: $story has no reason"
    [[ -z ${reasons[$story]:-} ]] || fail "skips.txt: $story is there twice"
    grep -qx "$story" <<<"$all" || fail "skips.txt has $story, which is none of upstream's stories"
    reasons[$story]=$reason
  done
}

# The go command replaces no file of another module: an overlay adds the copies to this one.
build() {
  local suite=$1 file name replaced=()
  mkdir -p "$output/$suite" "$output/logs/$suite"
  for file in "$upstream/test/integration/$suite"/*.go; do
    name=$suite/$(basename "$file")
    rewrite "$file" >"$output/$name"
    replaced+=("\"$PWD/$name\": \"$output/$name\"")
  done
  has_controller "$output/$suite"/*.go || fail "in suite $suite no file imports $controller"
  (IFS=,; echo "{\"Replace\": {${replaced[*]}}}") >"$output/$suite.json"
  echo "building upstream's suite $suite (minutes, the first time)"
  # The flags of the control plane's build: what is in its cache isn't compiled again.
  CGO_ENABLED=0 GOFLAGS='' go test -c -trimpath -vet=off -overlay "$output/$suite.json" -o "$output/$suite.test" "./$suite"
}

# Each story is a process of its own, with an etcd of its own: one that hangs takes no other with it. What it leaves in its
# group is killed; its manager is in none, and ends with it, as it does with this script.
play() {
  local suite=${1%/*} story=${1#*/} temporary process status=0
  local folder=$output/logs/$suite
  temporary=$(mktemp -d -t s-XXXXXX)
  local -a variables=(
    PATH="$programs:$PATH" TMPDIR="$temporary" STOWAGE_REPOSITORY="$repository" STOWAGE_LOGS="$folder"
    # Where upstream finds its own files: it knows paths of a trimmed build as Bazel's.
    TEST_SRCDIR="${upstream%/k8s.io/*}" TEST_WORKSPACE=.
    # No etcd of somebody else's: at the default address there may be one.
    KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:1
  )
  local -a leash=(setpriv --pdeathsig KILL --)
  env -C "$folder" "${variables[@]}" "${leash[@]}" setsid timeout --signal=KILL $((timeout + last_words)) "${leash[@]}" \
    "$output/$suite.test" -test.v -test.run="^$story\$" -test.timeout="${timeout}s" >"$folder/$story.log" 2>&1 &
  process=$!
  wait "$process" || status=$?
  kill -KILL -- "-$process" 2>/dev/null || true # nothing is left of it
  rm -rf "$temporary"
  ((status == 0)) && grep -q -- "--- PASS: $story " "$folder/$story.log"
}

# The lines that tell of a failure, if there are any, or else the last.
explain() {
  local telling
  telling=$(grep -E '_test\.go:|^ *--- FAIL|^panic:' "$1" || cat "$1")
  echo "     its last words in $1:"
  tail -n 25 <<<"$telling" | sed 's/^/     /'
}

main() {
  programs=$(realpath "$1")
  local expression=${2:-} skipped_only=${3:-} suite story reason started played=0 failed=0 skipped=0
  cd "$(dirname "${BASH_SOURCE[0]}")"
  repository=$(realpath ../..)
  output=$repository/bin/upstream
  upstream=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
  rm -rf "$output" && mkdir -p "$output"
  echo 'module upstream' >"$output/go.mod" # or the copies would be packages of the repository's own module
  for suite in "${suites[@]}"; do build "$suite"; done
  all=$(for suite in "${suites[@]}"; do stories "$suite" "$output/$suite"/*.go; done)
  read_skips <skips.txt
  for story in $(grep -E -e "$expression" <<<"$all"); do
    reason=${reasons[$story]:-}
    if [[ -n $skipped_only && -z $reason ]]; then continue; fi
    if [[ -z $skipped_only && -n $reason ]]; then
      skipped=$((skipped + 1))
      echo "SKIP $story: $reason"
      continue
    fi
    played=$((played + 1)) started=$SECONDS
    if play "$story"; then
      echo "PASS $story ($((SECONDS - started)) s)"
    else
      failed=$((failed + 1))
      echo "FAIL $story ($((SECONDS - started)) s)"
      explain "$output/logs/$story.log"
    fi
  done
  echo "upstream's stories: $played played, $failed failed, $skipped skipped"
  ((played + skipped > 0)) || fail "no story is named so"
  ((failed == 0)) || fail "$failed of upstream's stories failed; logs are in $output/logs"
}

# Tests take the functions alone.
[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"
