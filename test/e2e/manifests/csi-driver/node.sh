# Starts the node service of Google's driver in a User Mode Linux guest. The driver looks for disks at /dev/sd*: these are
# the devices that gce-mock plugs in, by other names.
set -e
minor=16
for letter in b c d e f g h i j k l m n o p; do
  mknod "/dev/sd$letter" b 98 "$minor"
  minor=$((minor + 16))
done
mkdir -p /dev/disk/by-id
exec /gce-pd-csi-driver "$@"
