#!/bin/bash
CPUS=$(lscpu | wc -l)
/etc/eks/bootstrap.sh c --kubelet-extra-args "--max-pods=20 --reserved-cpus=$CPUS"
