// Package nodenumaresource is the CPU accumulator of Koordinator's plugin of that name, which its
// package does not export: build.sh lays the two files that it consists of over this folder.
package nodenumaresource

import (
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/util/cpuset"
)

// ErrNotEnoughCPUs is the text that the plugin has for it, in a file that is not laid over.
const ErrNotEnoughCPUs = "not enough cpus available to satisfy request"

// Take chooses CPUs as by default: whole cores from where most is free, shared with no other pod.
func Take(topology *CPUTopology, available cpuset.CPUSet, count int) (cpuset.CPUSet, error) {
	return takePreferredCPUs(topology, 1, available, cpuset.NewCPUSet(), nil, count,
		config.CPUBindPolicyFullPCPUs, config.CPUExclusivePolicyNone, config.NUMALeastAllocated)
}
