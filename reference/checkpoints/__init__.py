"""The managers' checkpoint files, byte for byte as the kubelet writes them."""
