//go:build since_1_33

package main

import kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

// checkCPUOptions finds nothing: options need no feature gate of their own any more.
func checkCPUOptions(*kubeletconfig.KubeletConfiguration) error { return nil }

// mergesDefaultEviction says whether thresholds that the configuration leaves out have their defaults.
func mergesDefaultEviction(config *kubeletconfig.KubeletConfiguration) bool {
	return config.MergeDefaultEvictionSettings
}
