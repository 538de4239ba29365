//go:build since_1_33

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// checkCPUOptions finds nothing: options need no feature gate of their own any more.
func checkCPUOptions(*kubeletconfig.KubeletConfiguration) error { return nil }

// mergesDefaultEviction says whether thresholds that the configuration leaves out have their defaults.
func mergesDefaultEviction(config *kubeletconfig.KubeletConfiguration) bool {
	return config.MergeDefaultEvictionSettings
}

// sparesExclusive says whether containers with exclusive CPUs have no quota.
func sparesExclusive() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.DisableCPUQuotaWithExclusiveCPUs)
}
