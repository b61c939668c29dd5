#!/bin/sh
# Called as etcd or kube-apiserver, becomes the program of that name in $STOWAGE_CONTROLPLANE, on a leash: the kernel
# kills it when the process that started it is gone, even by kill -9, so that no test leaves servers behind.
# A server of a short life collects garbage rarely, which saves a tenth of its time.
export GOGC="${STOWAGE_CONTROLPLANE_GOGC:-300}"
# Threads of one that gets a request at a time wake each other for nothing, which takes an eighth of its time.
[ -z "${STOWAGE_CONTROLPLANE_PROCESSORS:-}" ] || export GOMAXPROCS="$STOWAGE_CONTROLPLANE_PROCESSORS"
program="$STOWAGE_CONTROLPLANE/$(basename "$0")"
if command -v setpriv >/dev/null; then
  exec setpriv --pdeathsig KILL -- "$program" "$@"
fi
exec "$program" "$@"
