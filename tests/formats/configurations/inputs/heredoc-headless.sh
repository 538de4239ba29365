cat > /etc/kubernetes/kubelet/config.json <<EOF
{"cpuManagerPolicy": "static"}
EOF
