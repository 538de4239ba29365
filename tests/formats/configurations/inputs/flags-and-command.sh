export KUBELET_EXTRA_ARGS="--reserved-cpus=0,24"
kubelet --cpu-manager-policy=static
