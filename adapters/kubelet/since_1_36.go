//go:build since_1_36

package main

import (
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	cmqos "k8s.io/kubernetes/pkg/kubelet/cm/qos"
)

// hasCPUsOfItsOwn is what containerManagerImpl.ContainerHasExclusiveCPUs asks the CPU Manager: CPUs that a
// pod shares out to its containers are none of their own.
func (n *node) hasCPUsOfItsOwn(pod *v1.Pod, c *v1.Container) bool {
	if utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResourceManagers) {
		return n.cpu.GetResourceIsolationLevel(pod, c) == cmqos.ResourceIsolationContainer
	}
	return !n.cpu.GetExclusiveCPUs(string(pod.UID), c.Name).IsEmpty()
}
