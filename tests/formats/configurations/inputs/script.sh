#!/bin/bash
cat > /etc/kubelet.yaml <<EOF
cpuManagerPolicy: static
EOF
