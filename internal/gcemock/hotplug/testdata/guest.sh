#!/bin/sh
# The first process of a guest: it runs the commands that it finds in the folder that
# it shares with the machine, and leaves there what they print.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
# Below it everything but the shared folder stays as it is, to be read only.
mount -t hostfs -o "$1" hostfs "$1"
mount -t tmpfs tmpfs /run
number=1
while :; do
  if [ -e "$1/ask-$number" ]; then
    sh "$1/ask-$number" > "$1/partial-$number" 2>&1
    mv "$1/partial-$number" "$1/answer-$number"
    number=$((number + 1))
  else
    sleep 0.05
  fi
done
