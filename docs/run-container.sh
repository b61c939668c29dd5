#!/usr/bin/env bash
# Runs a command as one container of a pod, with the volumes that the node agent
# mounted for it: what a container runtime does, and no more than that of it. See
# docs/runtime.md. No other process may write to the root directory.
set -euo pipefail

if [[ $# -lt 4 || $EUID -ne 0 ]]; then
  echo "usage, as root: $0 POD_DIRECTORY CONTAINER ROOT COMMAND..." >&2
  exit 2
fi
pod=$1 container=$2 root=$(realpath "$3")
description=$pod/containers/$container/mounts.json
if [[ ! -e $description ]]; then
  echo "$description isn't there: wait until the pod's condition stowage.dev/VolumesReady is True" >&2
  exit 1
fi

# In a mount namespace of its own, so that nothing is left when the command ends.
if [[ -z ${IN_NAMESPACE-} ]]; then
  IN_NAMESPACE=yes exec unshare --mount --propagation slave "$0" "$@"
fi
unset IN_NAMESPACE
shift 3

show() { # source, target and options of one mount
  if [[ -d $1 ]]; then
    mkdir -p "$2"
  else
    mkdir -p "$(dirname "$2")" && touch "$2"
  fi
  mount --rbind "$1" "$2"
  for option in $3; do
    case $option in
      rbind | rw) ;;
      rprivate | rslave) mount "--make-$option" "$2" ;;
      ro) mount -o remount,bind,ro "$2" ;;
      rro) mount -o remount,bind,ro=recursive "$2" ;;
      *) echo "this example can't do $option, which $2 asks for" >&2 && exit 1 ;;
    esac
  done
}

while IFS=$'\t' read -r source destination options; do
  show "$source" "$root$destination" "$options"
done < <(jq -r '.mounts[] | [.source, .destination, (.options | join(" "))] | @tsv' "$description")

while IFS=$'\t' read -r path type major minor; do
  mkdir -p "$(dirname "$root$path")"
  [[ -e $root$path ]] || mknod -m 600 "$root$path" "$type" "$major" "$minor"
done < <(jq -r '.devices[] | [.path, .type, .major, .minor] | @tsv' "$description")

groups=$(jq -r '.additionalGids | map(tostring) | join(",")' "$description")
exec chroot --groups="$groups" "$root" "$@"
