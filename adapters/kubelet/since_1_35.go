//go:build since_1_35

package main

import (
	_ "unsafe" // for go:linkname

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// newDeviceManager is the function that NewManagerImpl calls with the kubelet's fixed socket path.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(
	logger klog.Logger, socket string, nodes []numaNode, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error)
