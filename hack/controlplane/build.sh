#!/usr/bin/env bash
# Puts etcd, kube-apiserver and kubectl of one Kubernetes version into bin/k8s/<version>/, from the first of these that
# has them: $KUBEBUILDER_ASSETS (as links), this user's cache, a download by setup-envtest if CONTROLPLANE=download,
# a build from the Go modules of this folder. Any other program of Kubernetes, named by PROGRAM, is built, and cached:
# one of its commands, or e2e.test, its end-to-end tests, with ginkgo, which runs them, and agnhost, which their pods run.
#
# The cache is filled under a lock and by a rename: two clones may build at once, and an interrupted build leaves
# nothing that a later one would take for finished.
#
# Usage: build.sh VERSION DIRECTORY [PROGRAM]
set -euo pipefail

version=${1:?usage: build.sh VERSION DIRECTORY [PROGRAM]}
target=${2:?usage: build.sh VERSION DIRECTORY [PROGRAM]}
extra=${3:-}
module=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -n $extra ]]; then programs=("$extra"); else programs=(etcd kube-apiserver kubectl); fi

say() { echo "controlplane: $*"; }

complete() {
  local program
  for program in "${programs[@]}"; do
    [[ -x $1/$program ]] || return 1
  done
}

# A change of the modules is another build of the same version.
build_name() {
  local fingerprint
  fingerprint=$(cd "$module" && cat go.mod go.sum etcd/main.go | sha256sum | cut -c1-12)
  echo "$version-$(go env GOOS)-$(go env GOARCH)-$fingerprint${extra:+-$extra}"
}

# The name of what the target was filled with lies beside it.
from=$target/.from${extra:+-$extra}
filled_with() {
  complete "$target" && [[ $(cat "$from" 2>/dev/null) == "$1" ]]
}

link_assets() {
  complete "$KUBEBUILDER_ASSETS" || { say "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks one of: ${programs[*]}" >&2; exit 1; }
  mkdir -p "$target"
  local program
  for program in "${programs[@]}"; do
    ln -sfn "$KUBEBUILDER_ASSETS/$program" "$target/$program"
  done
  echo "$KUBEBUILDER_ASSETS" >"$from"
  say "using $KUBEBUILDER_ASSETS"
}

# Hard links cost no space; they are impossible where the cache is on another file system.
take_from_cache() {
  mkdir -p "$target"
  local program
  for program in "${programs[@]}"; do
    ln -f "$1/$program" "$target/$program" 2>/dev/null || cp -f "$1/$program" "$target/$program"
  done
}

download() {
  say "downloading Kubernetes $version with setup-envtest"
  local folder
  folder=$(go -C "$module/../tools" tool setup-envtest use "$version" --bin-dir "$1/download" --print path)
  mv "$folder"/* "$1/"
  chmod -R u+w "$1/download" && rm -rf "$1/download"
}

# Its naps are its own to end: one left behind would keep a pipe from this script open.
tick() {
  local started=$SECONDS nap
  trap 'kill "$nap"; exit' TERM
  while true; do
    sleep 30 &
    nap=$!
    wait "$nap"
    say "  still building $1: $((SECONDS - started)) s"
  done
}

build_one() {
  local folder=$1 program=$2 package=$3 expected=$4 started=$SECONDS
  local -a command=(build)
  if [[ $program == *.test ]]; then command=(test -c -vet=off); fi
  say "building $program ($expected the first time, on 2 cores)"
  tick "$program" &
  local ticker=$! status=0
  (
    cd "$module"
    CGO_ENABLED=0 go "${command[@]}" -trimpath -buildvcs=false -o "$folder/$program" -ldflags "$flags" "$package"
  ) || status=$?
  kill "$ticker" 2>/dev/null || true
  ((status == 0)) || { say "building $program failed" >&2; exit "$status"; }
  say "  $program took $((SECONDS - started)) s"
}

package_of() {
  case $1 in
    e2e.test) echo k8s.io/kubernetes/test/e2e ;;
    agnhost) echo k8s.io/kubernetes/test/images/agnhost ;;
    ginkgo) echo github.com/onsi/ginkgo/v2/ginkgo ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

build() {
  local required
  required=$(cd "$module" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  [[ $required == "v$version" ]] || { say "go.mod requires $required, not v$version" >&2; exit 1; }
  local -r package=k8s.io/component-base/version
  local -r flags="-s -w -X $package.gitVersion=v$version -X $package.gitMajor=${version%%.*} -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
  if [[ -n $extra ]]; then
    build_one "$1" "$extra" "$(package_of "$extra")" "some minutes"
    return
  fi
  build_one "$1" etcd ./etcd "half a minute"
  build_one "$1" kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "3 to 6 minutes"
  build_one "$1" kubectl k8s.io/kubernetes/cmd/kubectl "half a minute"
}

fill_cache() {
  local cache=$1 fresh
  fresh=$(mktemp -d "$(dirname "$cache")/.building-XXXXXX")
  # shellcheck disable=SC2064 # the folder's name is wanted as it is now
  trap "kill \$(jobs -p) 2>/dev/null; rm -rf '$fresh'" EXIT
  if [[ ${CONTROLPLANE:-build} == download && -z $extra ]]; then download "$fresh"; else build "$fresh"; fi
  chmod 0755 "$fresh"
  rm -rf "$cache"
  mv -T "$fresh" "$cache"
  trap - EXIT
}

if [[ -n ${KUBEBUILDER_ASSETS:-} && -z $extra ]]; then
  link_assets
  exit
fi
name=$(build_name)
if filled_with "$name"; then
  exit
fi
cache=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/stowage/controlplane/$name
mkdir -p "$(dirname "$cache")"
if ! complete "$cache"; then
  exec 9>"$cache.lock"
  flock --nonblock 9 || { say "waiting for another build of the same programs"; flock 9; }
  complete "$cache" || fill_cache "$cache"
fi
take_from_cache "$cache"
echo "$name" >"$from"
say "${programs[*]} $version: in $target"
