//go:build kubelet_1_33 || kubelet_1_34

package main

import (
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// newDeviceManager is what NewManagerImpl calls with the kubelet's own, fixed socket path.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(
	socket string, nodes []cadvisorapi.Node, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error)

func newCPUManager(
	config *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, reserved reservation,
	stateDir string, affinity topologymanager.Store,
) (cpumanager.Manager, error) {
	return cpumanager.NewManager(
		config.CPUManagerPolicy, config.CPUManagerPolicyOptions, reconcilePeriod, machine,
		reserved.cpus, reserved.amounts, stateDir, affinity)
}

func addHintProvider(manager topologymanager.Manager, provider topologymanager.HintProvider) {
	manager.AddHintProvider(provider)
}

func startCPUManager(n *node) error {
	return n.cpu.Start(n.activePods, n.gate, n, n.runtime, n.cpuContainers)
}

func startDeviceManager(n *node, containers containermap.ContainerMap, running sets.Set[string]) error {
	return n.devices.Start(n.activePods, n.gate, containers, running)
}

func stopDeviceManager(manager *devicemanager.ManagerImpl) {
	if err := manager.Stop(); err != nil {
		klog.ErrorS(err, "The device manager did not stop")
	}
}

func removeFromCPUManager(manager cpumanager.Manager, id string) error {
	return manager.RemoveContainer(id)
}

func newStub(devices []*pluginapi.Device, socket, resource string) *plugin.Stub {
	return plugin.NewDevicePluginStub(devices, socket, resource, false, false)
}

func startStub(stub *plugin.Stub) error { return stub.Start() }

func registerStub(stub *plugin.Stub, socket, resource string) error {
	return stub.Register(socket, resource, "")
}

func stopStub(stub *plugin.Stub) {
	if err := stub.Stop(); err != nil {
		klog.ErrorS(err, "A device plugin did not stop")
	}
}

func discoverCPUTopology(machine *cadvisorapi.MachineInfo) (*cputopology.CPUTopology, error) {
	return cputopology.Discover(machine)
}

func newStaticPolicy(
	topology *cputopology.CPUTopology, affinity topologymanager.Store, options map[string]string,
) (cpumanager.Policy, error) {
	return cpumanager.NewStaticPolicy(topology, 0, cpuset.New(), affinity, options)
}

func newMemoryState() cpustate.State { return cpustate.NewMemoryState() }

func allocate(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod) error {
	return policy.Allocate(state, pod, &pod.Spec.Containers[0])
}

func newTopologyOptions(options map[string]string) (topologymanager.PolicyOptions, error) {
	return topologymanager.NewPolicyOptions(options)
}

func merge(
	policy topologymanager.Policy, providers []map[string][]topologymanager.TopologyHint,
) (topologymanager.TopologyHint, bool) {
	return policy.Merge(providers)
}
