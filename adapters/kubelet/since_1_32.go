//go:build since_1_32

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/utils/cpuset"
)

// allCPUs returns the machine's CPUs.
func (n *node) allCPUs(*machineInfo) cpuset.CPUSet { return n.cpu.GetAllCPUs() }

// absentMemoryManager returns nil: every kubelet has a Memory Manager.
func absentMemoryManager() memorymanager.Manager { return nil }

// podLimit returns a pod-level CPU limit, which applies to containers without limits.
func podLimit(pod *v1.Pod) *resource.Quantity {
	if utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources) && resourcehelper.IsPodLevelResourcesSet(pod) {
		return pod.Spec.Resources.Limits.Cpu()
	}
	return &resource.Quantity{}
}
