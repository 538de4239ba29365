//go:build since_1_37

package main

import (
	"github.com/google/cadvisor/lib/machine"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/google/cadvisor/lib/utils/sysinfo"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
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

// setPodLevelDefaults sets the defaults of pod-level resources, which the API server no longer sets
// with the other defaults.
func setPodLevelDefaults(pod *v1.Pod) {
	if pod.Spec.Resources == nil {
		return
	}
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		panic(badRequest{err})
	}
	podutil.DefaultPodLevelResources(internal)
	resources := &v1.ResourceRequirements{}
	if err := corev1.Convert_core_ResourceRequirements_To_v1_ResourceRequirements(
		internal.Spec.Resources, resources, nil); err != nil {
		panic(badRequest{err})
	}
	pod.Spec.Resources = resources
}
