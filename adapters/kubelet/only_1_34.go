//go:build kubelet_1_34

package main

import (
	"context"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
)

func decodeConfig(codecs *serializer.CodecFactory, data []byte) (*kubeletconfig.KubeletConfiguration, error) {
	return codec.DecodeKubeletConfiguration(context.Background(), codecs, data)
}

func newMemoryManager(
	config *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, reserved reservation,
	stateDir string, affinity topologymanager.Store,
) (memorymanager.Manager, error) {
	return memorymanager.NewManager(
		context.Background(), config.MemoryManagerPolicy, machine, reserved.amounts, config.ReservedMemory, stateDir, affinity)
}

func startMemoryManager(n *node) error {
	return n.memory.Start(context.Background(), n.activePods, n.gate, n, n.runtime, n.memoryContainers)
}

func removeFromMemoryManager(manager memorymanager.Manager, id string) error {
	return manager.RemoveContainer(context.Background(), id)
}

func allocatableMemory(manager memorymanager.Manager) []memorystate.Block {
	return manager.GetAllocatableMemory(context.Background())
}

func memoryOf(manager memorymanager.Manager, uid, name string) []memorystate.Block {
	return manager.GetMemory(context.Background(), uid, name)
}
