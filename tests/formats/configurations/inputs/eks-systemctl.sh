#!/bin/bash
systemctl enable kubelet --now
/etc/eks/bootstrap.sh c --kubelet-extra-args "--reserved-cpus=0"
