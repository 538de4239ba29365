//go:build since_1_33

package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// checkCPUOptions finds no errors: options no longer need a feature gate of their own.
func checkCPUOptions(*kubeletconfig.KubeletConfiguration) error { return nil }

// mergesDefaultEviction reports whether eviction thresholds missing from the configuration get
// their defaults.
func mergesDefaultEviction(config *kubeletconfig.KubeletConfiguration) bool {
	return config.MergeDefaultEvictionSettings
}

// sparesExclusive reports whether containers with exclusive CPUs have no quota.
func sparesExclusive() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.DisableCPUQuotaWithExclusiveCPUs)
}
