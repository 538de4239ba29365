//go:build until_1_36

package main

import (
	cadvisorapi "github.com/google/cadvisor/info/v1"
	"github.com/google/cadvisor/machine"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/google/cadvisor/utils/sysinfo"
	v1 "k8s.io/api/core/v1"
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

// roundCPUs returns a CPU reservation unchanged.
func roundCPUs(*resource.Quantity) {}

// setPodLevelDefaults does nothing: pod-level resources get their defaults with all others.
func setPodLevelDefaults(*v1.Pod) {}
