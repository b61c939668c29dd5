#!/usr/bin/env bash
# Makes sure that the Debian packages are installed whose programs go into images:
# installs them where that is possible, else says what to install.
set -euo pipefail

missing=()
for package in busybox-static ca-certificates coreutils dash e2fsprogs mount util-linux xfsprogs; do
  dpkg -L "$package" >/dev/null 2>&1 || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "images: install these Debian packages: ${missing[*]}" >&2
  exit 1
fi
echo "images: installing ${missing[*]}"
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
# A list of packages that is too old is the usual reason for a failure.
install 2>/dev/null || { apt-get update -qq; install; }
