//go:build until_1_32

package main

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// checkCPUOptions refuses the CPU Manager's options if their gate is off, as the kubelet's command
// does.
func checkCPUOptions(config *kubeletconfig.KubeletConfiguration) error {
	options := config.CPUManagerPolicyOptions
	if options == nil || utilfeature.DefaultFeatureGate.Enabled(features.CPUManagerPolicyOptions) {
		return nil
	}
	return fmt.Errorf("CPU Manager policy options %v require feature gates %q, %q enabled",
		options, features.CPUManager, features.CPUManagerPolicyOptions)
}

// mergesDefaultEviction returns false: the field was added in 1.33.
func mergesDefaultEviction(*kubeletconfig.KubeletConfiguration) bool { return false }

// sparesExclusive returns false: containers with exclusive CPUs have a quota like all others.
func sparesExclusive() bool { return false }
