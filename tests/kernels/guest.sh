#!/bin/sh
# The first program of a guest: applies the options meant for it, then sends the kernel's files.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for option in $(cat /proc/cmdline); do
  case $option in
    offline=*)
      for cpu in $(echo "${option#offline=}" | tr , ' '); do
        echo 0 > "/sys/devices/system/cpu/cpu$cpu/online"
      done ;;
    unplug=*)
      for cpu in $(echo "${option#unplug=}" | tr , ' '); do
        echo 1 > "/sys/devices/system/cpu/cpu$cpu/firmware_node/eject"
        while [ -e "/sys/devices/system/cpu/cpu$cpu" ]; do :; done
      done ;;
  esac
done
cd /
for path in sys/devices/system/cpu sys/devices/system/node sys/kernel/mm/hugepages \
  sys/devices/virtual/dmi/id proc/cpuinfo proc/meminfo proc/stat proc/cmdline proc/version; do
  [ -e "$path" ] || continue
  mkdir -p "/tree/${path%/*}"
  cp -a "$path" "/tree/$path" 2> /dev/null
done
# A copy is empty if the file cannot be read.
find /tree -type f -size 0 -exec rm {} +
echo BEGIN-TREE
tar -c -C /tree . | gzip -1 | base64
echo END-TREE
poweroff -f
