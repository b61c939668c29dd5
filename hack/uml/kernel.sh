#!/usr/bin/env bash
# Puts a kernel for guests into DIRECTORY: linux.uml, and its modules. It is faster than that of this machine's package, as processes
# of its guests make system calls by seccomp in place of ptrace. It is the package of a later release of Debian, known by its digest.
# Where that can't be had, the directory stays without it, and guests run this machine's own kernel.
#
# Usage: [DEBIAN_MIRROR=http://…/debian] kernel.sh DIRECTORY
set -euo pipefail

target=${1:?usage: kernel.sh DIRECTORY}
readonly package=user-mode-linux_7.2um1_amd64.deb
readonly digest=f947c9244fd79d481299df2ad68961f6b3b7703bff38c4b0e726f861161da62c
readonly mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/stowage/uml/$digest

# Two of its symbols are of a later C library. Flag "weak" of that version has the loader start it without; preload/preload.c
# has both functions.
readonly flags_of_version=$((0x2ea9c)) weak='\x02'

# Its commands are one list: bash ignores failures in what a condition calls.
fill_cache() {
  local fresh
  fresh=$(mktemp -d "$(dirname "$cache")/.fetching-XXXXXX") || return
  # shellcheck disable=SC2064 # the folder's name is wanted as it is now
  trap "rm -rf '$fresh'" EXIT
  /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file \
    "$mirror/pool/main/u/user-mode-linux/$package" "$fresh/$package" "SHA256:$digest" >/dev/null &&
    dpkg -x "$fresh/$package" "$fresh/files" &&
    mkdir "$fresh/kernel" &&
    mv "$fresh/files/usr/bin/linux.uml" "$fresh/files/usr/lib/uml/modules" "$fresh/kernel/" &&
    printf "$weak" | dd of="$fresh/kernel/linux.uml" bs=1 seek="$flags_of_version" conv=notrunc status=none &&
    mv -T "$fresh/kernel" "$cache"
}

# Two targets of make may ask at once.
mkdir -p "$(dirname "$cache")" "$(dirname "$target")"
exec 9>"$cache.lock"
flock 9
[[ $(cat "$target/.from" 2>/dev/null) != "$digest" ]] || exit 0
if [[ $(uname -m) != x86_64 ]] || ! { [[ -d $cache ]] || fill_cache; }; then
  echo "guests: $package isn't to be had here: they run this machine's linux.uml, and take longer" >&2
  exit 0
fi
rm -rf "$target"
cp -al "$cache" "$target" 2>/dev/null || { rm -rf "$target"; cp -a "$cache" "$target"; }
echo "$digest" >"$target/.from"
