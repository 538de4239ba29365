export CPUS="--cpu-manager-policy=static --reserved-cpus=0"
export KUBELET_EXTRA_ARGS="--max-pods=50 $CPUS"
