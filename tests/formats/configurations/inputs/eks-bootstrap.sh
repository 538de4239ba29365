#!/bin/bash
set -e
/etc/eks/bootstrap.sh my-cluster --use-max-pods false \
  --kubelet-extra-args '--max-pods=20 --reserved-cpus=0-1 --cpu-manager-policy static'
