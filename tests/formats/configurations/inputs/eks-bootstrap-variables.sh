#!/bin/bash
set -e
CPUS=0-1
ARGS="--cpu-manager-policy=static --reserved-cpus=$CPUS"
ARGS+=' --topology-manager-scope=pod'
/etc/eks/bootstrap.sh c --kubelet-extra-args "$ARGS --max-pods=20"
