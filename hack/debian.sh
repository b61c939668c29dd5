#!/usr/bin/env bash
# Installs Debian packages where that is possible. Elsewhere it says that their programs are needed, and fails.
# Usage: hack/debian.sh WHO [PACKAGE...], where WHO needs them.
set -euo pipefail

who=$1
shift
[[ $# -gt 0 ]] || exit 0
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "$who: install what brings these Debian packages' programs: $*" >&2
  exit 1
fi
echo "$who: installing $*"
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
# A list of packages that is too old is the usual reason for a failure.
install "$@" 2>/dev/null || { apt-get update -qq && install "$@"; }
