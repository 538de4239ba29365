// Package nodenumaresource exports the CPU accumulator of Koordinator's plugin of that name.
// build.sh adds the accumulator's two files to this folder when it compiles.
package nodenumaresource

import (
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/util/cpuset"
)

// ErrNotEnoughCPUs has the plugin's text. It is defined in a file that isn't added.
const ErrNotEnoughCPUs = "not enough cpus available to satisfy request"

// Take chooses CPUs with the default settings: whole cores from the emptiest nodes, shared with no
// other pod.
func Take(topology *CPUTopology, available cpuset.CPUSet, count int) (cpuset.CPUSet, error) {
	return takePreferredCPUs(topology, 1, available, cpuset.NewCPUSet(), nil, count,
		config.CPUBindPolicyFullPCPUs, config.CPUExclusivePolicyNone, config.NUMALeastAllocated)
}
