//go:build since_1_37

package main

import (
	"github.com/google/cadvisor/lib/machine"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/google/cadvisor/lib/utils/sysinfo"
	"k8s.io/apimachinery/pkg/api/resource"
)

type (
	machineInfo = cadvisorapi.MachineInfo
	numaNode    = cadvisorapi.Node
)

// cAdvisor's readings of a machine.
var (
	newSysFs         = sysfs.NewRealSysFs
	hugePages        = sysinfo.GetHugePagesInfo
	memoryCapacity   = machine.GetMachineMemoryCapacity
	physicalCores    = machine.GetPhysicalCores
	sockets          = machine.GetSockets
	topologyAndCores = machine.GetTopology
)

// roundCPUs rounds a CPU reservation to the nearest thousandth of a CPU.
func roundCPUs(amount *resource.Quantity) {
	amount.SetMilli((amount.ScaledValue(resource.Micro) + 500) / 1000)
}
