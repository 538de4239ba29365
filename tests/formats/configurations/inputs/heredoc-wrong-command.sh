cat > config.json << END
{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cpuManagerPolicy": "static"}
END
sed -i 's/"maxPods": .*/"maxPods": 20/' /etc/kubernetes/kubelet/config.json
kubelet --config config.json -reserved-cpus=0
