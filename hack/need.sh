#!/usr/bin/env bash
# Makes sure that this machine has what some targets need: installs Debian packages where that is possible, else says what
# to install, and fails; without filesystems it only says so: tests that need one are skipped. For guests, it also puts a kernel
# into the folder STOWAGE_UML. Usage: need.sh WHAT...
set -euo pipefail

# Programs, each with the packages that bring it. The nodes of Kubernetes need theirs beside those of guests.
declare -A filesystems=(
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [blkid]=util-linux [mount]=mount
)
declare -A guests=(
  [linux.uml]=user-mode-linux [ganesha.nfsd]='nfs-ganesha nfs-ganesha-vfs' [rpcbind]=rpcbind [ip]=iproute2 [gcc]=gcc
)
declare -A nodes=(
  [/usr/bin/containerd]=containerd [/usr/sbin/runc]=runc [/usr/lib/cni/ptp]=containernetworking-plugins
  [/usr/sbin/mkfs.ext4]=e2fsprogs [/usr/sbin/mount.nfs]=nfs-common
)
# Packages whose programs go into images.
images='busybox-static ca-certificates coreutils dash e2fsprogs mount nfs-ganesha nfs-ganesha-vfs libtirpc-common rpcbind util-linux xfsprogs'

fail() { echo "$*" >&2; exit 1; }

missing_of() {
  local -n programs=$1
  local program
  for program in "${!programs[@]}"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing+=(${programs[$program]})
  done
}

check_guests() {
  [[ $EUID -eq 0 ]] || fail "guests: run it as root: it makes a network and mounts of its own"
  if [[ ! -c /dev/net/tun ]]; then
    # The kernel may have the driver though there is no device file.
    mkdir -p /dev/net && mknod -m 0666 /dev/net/tun c 10 200 2>/dev/null || true
  fi
  (: <>/dev/net/tun) 2>/dev/null || fail "guests: there is no /dev/net/tun, which the guests' network needs"
}

add() {
  if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "$what: install what brings these Debian packages' programs: $*" >&2
    return 1
  fi
  echo "$what: installing $*"
  # A list of packages that is too old is the usual reason for a failure.
  install "$@" 2>/dev/null || { apt-get update -qq && install "$@"; }
}

install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

for what; do
  missing=()
  case $what in
    images) for package in $images; do dpkg -L "$package" >/dev/null 2>&1 || missing+=("$package"); done ;;
    guests) check_guests && missing_of guests ;;
    *) missing_of "$what" ;;
  esac
  if [[ ${#missing[@]} -gt 0 ]]; then
    add "${missing[@]}" || [[ $what == filesystems ]] || exit 1
  fi
  [[ $what != guests || -z ${STOWAGE_UML:-} ]] || hack/uml/kernel.sh "$STOWAGE_UML"
done
