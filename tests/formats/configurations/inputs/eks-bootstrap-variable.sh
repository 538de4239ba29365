#!/bin/bash
export CPUS=0-1
ARGS="--cpu-manager-policy=static --reserved-cpus=$CPUS"
ID=$(curl http://169.254.169.254/latest/meta-data/instance-id)
/etc/eks/bootstrap.sh c --kubelet-extra-args "$ARGS --max-pods=20 --hostname-override=$ID"
