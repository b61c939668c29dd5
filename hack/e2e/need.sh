#!/usr/bin/env bash
# Makes sure that this machine has the programs that nodes of Kubernetes need, beside those of hack/uml/need.sh:
# installs them where that is possible, else says what to install.
set -euo pipefail

declare -A package=(
  [/usr/bin/containerd]=containerd [/usr/sbin/runc]=runc [/usr/lib/cni/ptp]=containernetworking-plugins [/usr/sbin/mkfs.ext4]=e2fsprogs
  [/usr/sbin/mount.nfs]=nfs-common
)
missing=()
for program in "${!package[@]}"; do
  [[ -x $program ]] || missing+=("${package[$program]}")
done
"$(dirname "${BASH_SOURCE[0]}")/../debian.sh" nodes "${missing[@]}"
