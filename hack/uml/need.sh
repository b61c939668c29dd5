#!/usr/bin/env bash
# Makes sure that this machine has the programs that guests and an NFS server need:
# installs them where that is possible, else says what to install.
set -euo pipefail

declare -A package=(
  [linux.uml]=user-mode-linux [ganesha.nfsd]='nfs-ganesha nfs-ganesha-vfs' [rpcbind]=rpcbind [ip]=iproute2 [gcc]=gcc
)
missing=()
for program in "${!package[@]}"; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing+=(${package[$program]})
done
[[ $EUID -eq 0 ]] || { echo "guests: run it as root: it makes a network and mounts of its own" >&2; exit 1; }
if [[ ! -c /dev/net/tun ]]; then
  # Where nobody made the device file the kernel may still have the driver.
  mkdir -p /dev/net && mknod -m 0666 /dev/net/tun c 10 200 2>/dev/null || true
fi
(: <>/dev/net/tun) 2>/dev/null || { echo "guests: there is no /dev/net/tun, which the guests' network needs" >&2; exit 1; }
"$(dirname "${BASH_SOURCE[0]}")/../debian.sh" guests "${missing[@]}"
