//go:build until_1_35

package main

import v1 "k8s.io/api/core/v1"

// hasCPUsOfItsOwn asks the CPU Manager what containerManagerImpl.ContainerHasExclusiveCPUs would.
func (n *node) hasCPUsOfItsOwn(pod *v1.Pod, c *v1.Container) bool {
	return !n.cpu.GetExclusiveCPUs(string(pod.UID), c.Name).IsEmpty()
}
