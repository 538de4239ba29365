cat <<EOF > node.json
{"cpuManagerPolicy": "static"}
EOF
az aks nodepool add --name pool --kubelet-config node.json
