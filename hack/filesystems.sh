#!/usr/bin/env bash
# Makes sure that this machine has the programs which tests make file systems with:
# installs them where that is possible, else says what to install. Tests that need
# one that is missing say so, and are skipped.
set -euo pipefail

declare -A package=(
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [blkid]=util-linux [mount]=mount
)
missing=()
for program in "${!package[@]}"; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
"$(dirname "${BASH_SOURCE[0]}")/debian.sh" filesystems "${missing[@]}" || echo "filesystems: tests that need them are skipped" >&2
