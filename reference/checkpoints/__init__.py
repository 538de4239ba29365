"""The checkpoint files of the managers, byte for byte as the kubelet writes them."""
