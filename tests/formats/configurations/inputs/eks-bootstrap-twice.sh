#!/bin/bash
if [ "$(uname -m)" = aarch64 ]; then
  /etc/eks/bootstrap.sh c --kubelet-extra-args '--max-pods=20'
else
  /etc/eks/bootstrap.sh c --kubelet-extra-args '--max-pods=30 --reserved-cpus=0'
fi
