export KUBELET_EXTRA_ARGS="--cpu-manager-policy=static"  # exclusive CPUs
KUBELET_EXTRA_ARGS="$KUBELET_EXTRA_ARGS --reserved-cpus=0,40"
KUBELET_EXTRA_ARGS+=" --topology-manager-policy=restricted"
