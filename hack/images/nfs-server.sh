#!/bin/sh
# Serves a folder over NFSv3 and NFSv4 from user space, where Kubernetes' own image has the kernel serve it. It is called as that
# one is: [-G GROUP] [FOLDER]. Clients find the folder at its path; /exports, if none is given, at the root, too.
set -eu

group='' pseudo=/
while getopts G: option; do
  case $option in
  G) group=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
if [ $# -gt 0 ]; then pseudo=$1; fi
folder=${1:-/exports}

mkdir -p "$folder" /run/ganesha /run/rpcbind /var/lib/nfs/ganesha
if [ -n "$group" ]; then
  chmod 070 "$folder"
  chgrp "$group" "$folder"
fi
echo 'Hello from NFS!' >"$folder/index.html"
chmod 644 "$folder/index.html"

cat >/run/ganesha.conf <<EOF
NFS_CORE_PARAM { Protocols = 3, 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; Only_Numeric_Owners = true; UseGetpwnam = true; DomainName = test; }
EXPORT { Export_Id = 1; Path = $folder; Pseudo = $pseudo; Access_Type = RW; Squash = No_Root_Squash;
         SecType = sys; Protocols = 3, 4; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
EOF
rpcbind -w
ganesha.nfsd -F -f /run/ganesha.conf -L /dev/stdout -p /run/ganesha/pid &
server=$!
trap 'kill -9 $server; exit 0' TERM INT
until nc -w 1 127.0.0.1 2049 </dev/null 2>/dev/null; do
  kill -0 $server
  sleep 0.2
done
echo "Serving $folder"
echo "NFS started"
wait $server
