//go:build until_1_34

package main

import (
	_ "unsafe" // for go:linkname

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// newDeviceManager is the function that NewManagerImpl calls with the kubelet's fixed socket path.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(
	socket string, nodes []numaNode, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error)
