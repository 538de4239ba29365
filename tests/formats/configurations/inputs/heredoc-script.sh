#!/bin/bash
set -e
cat > /etc/sysctl.d/90-net.conf <<'END'
net.ipv4.ip_forward = 1
END
cat <<EOF > /etc/kubernetes/kubelet.yaml
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: restricted
EOF
kubelet --config=/etc/kubernetes/kubelet.yaml --reserved-cpus=0
