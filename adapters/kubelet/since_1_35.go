//go:build kubelet_1_35 || kubelet_1_36

package main

import (
	"context"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
	"k8s.io/utils/cpuset"
)

func decodeConfig(codecs *serializer.CodecFactory, data []byte) (*kubeletconfig.KubeletConfiguration, error) {
	return codec.DecodeKubeletConfiguration(context.Background(), codecs, data)
}

// newDeviceManagerAt is what NewManagerImpl calls with the kubelet's own, fixed socket path.
//
//go:linkname newDeviceManagerAt k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManagerAt(
	logger klog.Logger, socket string, nodes []cadvisorapi.Node, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error)

func newDeviceManager(
	socket string, nodes []cadvisorapi.Node, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error) {
	return newDeviceManagerAt(klog.Background(), socket, nodes, affinity)
}

func newCPUManager(
	config *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, reserved reservation,
	stateDir string, affinity topologymanager.Store,
) (cpumanager.Manager, error) {
	return cpumanager.NewManager(
		klog.Background(), config.CPUManagerPolicy, config.CPUManagerPolicyOptions, reconcilePeriod, machine,
		reserved.cpus, reserved.amounts, stateDir, affinity)
}

func newMemoryManager(
	config *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, reserved reservation,
	stateDir string, affinity topologymanager.Store,
) (memorymanager.Manager, error) {
	return memorymanager.NewManager(
		klog.Background(), config.MemoryManagerPolicy, machine, reserved.amounts, config.ReservedMemory,
		stateDir, affinity)
}

func addHintProvider(manager topologymanager.Manager, provider topologymanager.HintProvider) {
	manager.AddHintProvider(klog.Background(), provider)
}

func startCPUManager(n *node) error {
	return n.cpu.Start(context.Background(), n.activePods, n.gate, n, n.runtime, n.cpuContainers)
}

func startMemoryManager(n *node) error {
	return n.memory.Start(context.Background(), n.activePods, n.gate, n, n.runtime, n.memoryContainers)
}

func startDeviceManager(n *node, containers containermap.ContainerMap, running sets.Set[string]) error {
	return n.devices.Start(klog.Background(), n.activePods, n.gate, containers, running)
}

func stopDeviceManager(manager *devicemanager.ManagerImpl) {
	if err := manager.Stop(klog.Background()); err != nil {
		klog.ErrorS(err, "The device manager did not stop")
	}
}

func removeFromCPUManager(manager cpumanager.Manager, id string) error {
	return manager.RemoveContainer(klog.Background(), id)
}

func removeFromMemoryManager(manager memorymanager.Manager, id string) error {
	return manager.RemoveContainer(klog.Background(), id)
}

func newStub(devices []*pluginapi.Device, socket, resource string) *plugin.Stub {
	return plugin.NewDevicePluginStub(klog.Background(), devices, socket, resource, false, false)
}

func startStub(stub *plugin.Stub) error { return stub.Start(context.Background()) }

func registerStub(stub *plugin.Stub, socket, resource string) error {
	return stub.Register(context.Background(), socket, resource, "")
}

func stopStub(stub *plugin.Stub) {
	if err := stub.Stop(klog.Background()); err != nil {
		klog.ErrorS(err, "A device plugin did not stop")
	}
}

func discoverCPUTopology(machine *cadvisorapi.MachineInfo) (*cputopology.CPUTopology, error) {
	return cputopology.Discover(klog.Background(), machine)
}

func newStaticPolicy(
	topology *cputopology.CPUTopology, affinity topologymanager.Store, options map[string]string,
) (cpumanager.Policy, error) {
	return cpumanager.NewStaticPolicy(klog.Background(), topology, 0, cpuset.New(), affinity, options)
}

func newMemoryState() cpustate.State { return cpustate.NewMemoryState(klog.Background()) }

func allocate(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod) error {
	return policy.Allocate(klog.Background(), state, pod, &pod.Spec.Containers[0])
}

func newTopologyOptions(options map[string]string) (topologymanager.PolicyOptions, error) {
	return topologymanager.NewPolicyOptions(klog.Background(), options)
}

func merge(
	policy topologymanager.Policy, providers []map[string][]topologymanager.TopologyHint,
) (topologymanager.TopologyHint, bool) {
	return policy.Merge(klog.Background(), providers)
}

func allocatableMemory(manager memorymanager.Manager) []memorystate.Block {
	return manager.GetAllocatableMemory()
}

func memoryOf(manager memorymanager.Manager, uid, name string) []memorystate.Block {
	return manager.GetMemory(uid, name)
}
