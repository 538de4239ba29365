//go:build since_1_36

package main

import (
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	cmqos "k8s.io/kubernetes/pkg/kubelet/cm/qos"
)

// hasCPUsOfItsOwn asks the CPU Manager what containerManagerImpl.ContainerHasExclusiveCPUs would.
// CPUs that a pod divides among its containers don't count.
func (n *node) hasCPUsOfItsOwn(pod *v1.Pod, c *v1.Container) bool {
	if utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResourceManagers) {
		return n.cpu.GetResourceIsolationLevel(pod, c) == cmqos.ResourceIsolationContainer
	}
	return !n.cpu.GetExclusiveCPUs(string(pod.UID), c.Name).IsEmpty()
}
