#!/usr/bin/env bash
# Makes sure that this machine has the programs that nodes of Kubernetes need, beside those of hack/uml/need.sh:
# installs them where that is possible, else says what to install.
set -euo pipefail

declare -A package=(
  [/usr/bin/containerd]=containerd [/usr/sbin/runc]=runc [/usr/lib/cni/ptp]=containernetworking-plugins [/usr/sbin/mkfs.ext4]=e2fsprogs
)
missing=()
for program in "${!package[@]}"; do
  [[ -x $program ]] || missing+=("${package[$program]}")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "nodes: install what brings these Debian packages' programs: ${missing[*]}" >&2
  exit 1
fi
echo "nodes: installing ${missing[*]}"
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
# A list of packages that is too old is the usual reason for a failure.
install 2>/dev/null || { apt-get update -qq; install; }
