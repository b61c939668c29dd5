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
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "filesystems: to run all tests install what brings these Debian packages' programs: ${missing[*]}" >&2
  exit 0
fi
echo "filesystems: installing ${missing[*]}"
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
# A list of packages that is too old is the usual reason for a failure.
install 2>/dev/null || { apt-get update -qq && install; } || echo "filesystems: could not install ${missing[*]}" >&2
