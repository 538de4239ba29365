//go:build until_1_31

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/utils/cpuset"
)

// allCPUs returns the machine's CPUs, which the CPU Manager doesn't report in these releases, or
// none if they can't be read.
func (n *node) allCPUs(machine *machineInfo) cpuset.CPUSet {
	topo, err := topology.Discover(machine)
	if err != nil {
		return cpuset.New()
	}
	return topo.CPUDetails.CPUs()
}

// absentMemoryManager replaces the Memory Manager if its gate is off: it has no hints, no memory
// and no file. It returns nil if the gate is on.
func absentMemoryManager() memorymanager.Manager {
	if utilfeature.DefaultFeatureGate.Enabled(features.MemoryManager) {
		return nil
	}
	return memorymanager.NewFakeManager()
}

// podLimit returns zero: these kubelets don't read pod-level resources.
func podLimit(*v1.Pod) *resource.Quantity { return &resource.Quantity{} }
