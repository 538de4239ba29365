//go:build since_1_32

package main

import (
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/utils/cpuset"
)

// allCPUs are the machine's.
func (n *node) allCPUs(*machineInfo) cpuset.CPUSet { return n.cpu.GetAllCPUs() }

// absentMemoryManager is nil: every kubelet has a Memory Manager.
func absentMemoryManager() memorymanager.Manager { return nil }
