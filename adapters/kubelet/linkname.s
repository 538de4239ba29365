// Lets the kubelet_*.go files declare a function without a body.
