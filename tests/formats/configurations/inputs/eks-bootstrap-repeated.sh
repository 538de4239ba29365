#!/bin/bash
/etc/eks/bootstrap.sh c --kubelet-extra-args '--cpu-manager-policy=static' \
  --kubelet-extra-args '--reserved-cpus=0'
