#!/usr/bin/env bash
# Makes sure that the Debian packages are installed whose programs go into images:
# installs them where that is possible, else says what to install.
set -euo pipefail

missing=()
for package in busybox-static ca-certificates coreutils dash e2fsprogs mount nfs-ganesha nfs-ganesha-vfs libtirpc-common util-linux xfsprogs; do
  dpkg -L "$package" >/dev/null 2>&1 || missing+=("$package")
done
"$(dirname "${BASH_SOURCE[0]}")/../debian.sh" images "${missing[@]}"
