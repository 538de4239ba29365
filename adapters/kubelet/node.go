package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// node has the managers of one kubelet process, and its pods.
type node struct {
	config   *kubeletconfig.KubeletConfiguration
	stateDir string
	gate     *reconcileGate
	runtime  *fakeRuntime

	topology topologymanager.Manager
	devices  *devicemanager.ManagerImpl
	cpu      cpumanager.Manager
	memory   memorymanager.Manager

	plugins *plugins
	// The managers' own maps of running containers, needed to remove a container by id.
	cpuContainers, memoryContainers containermap.ContainerMap

	pods    []*v1.Pod       // pods on the node, in order of admission
	ended   map[string]bool // ids of containers that ended before their pod
	running bool            // whether the start is over and the statuses of pods are known
	tell    []string        // optional fields to include in answers
}

type startArgs struct {
	Kubernetes string            `json:"kubernetes"`
	Machine    json.RawMessage   `json:"machine"`
	Root       string            `json:"root"`
	Config     json.RawMessage   `json:"config"`
	StateDir   string            `json:"state_dir"`
	Devices    []deviceList      `json:"devices"`
	Pods       []json.RawMessage `json:"pods"`
	Flags      []string          `json:"flags"`
	Tell       []string          `json:"tell"`
}

func (s *server) start(raw json.RawMessage) any {
	var args startArgs
	decodeStrict(raw, &args)
	if answer, ok := s.checkRelease(args.Kubernetes); !ok {
		return answer
	}
	if (args.Machine == nil) == (args.Root == "") {
		panic(reject("start needs either a machine or a root"))
	}
	if !filepath.IsAbs(args.StateDir) {
		panic(reject("state_dir %q is no absolute path", args.StateDir))
	}
	s.stop()

	config, err := loadConfig(args.Config, args.Flags)
	if err != nil {
		return refusedStart{"config", err.Error()}
	}
	machine, err := readOrDiscover(args)
	if err != nil {
		return refusedStart{"discovery", err.Error()}
	}
	reserved, err := reserve(config, machine)
	if err != nil {
		return refusedStart{"config", err.Error()}
	}
	inForce := configInForce(config)
	if err := checkCPUOptions(config); err != nil {
		return refusedStart{"config", err.Error()}
	}
	options, err := topologyOptions(config)
	if err != nil {
		return refusedStart{"config", err.Error()}
	}

	n := &node{
		config:   config,
		stateDir: args.StateDir,
		gate:     newReconcileGate(),
		runtime:  &fakeRuntime{},
		ended:    map[string]bool{},
		tell:     args.Tell,
	}
	for _, manifest := range args.Pods {
		n.pods = append(n.pods, decodePod(manifest))
	}
	started := false
	defer func() {
		if !started {
			n.stop()
		}
	}()
	if stage, err := n.make(machine, options, reserved, s.pluginDirectory(args.StateDir)); err != nil {
		return refusedStart{stage, err.Error()}
	}
	if stage, err := n.start(); err != nil {
		return refusedStart{stage, err.Error()}
	}
	if n.plugins, err = startPlugins(n.devices, s.sockets, args.Devices); err != nil {
		return refusedStart{"devices", err.Error()}
	}
	// The loop's first pass runs at the start, before any pod's status is known. It removes stale
	// state and doesn't update the runtime.
	n.pass()
	n.running = true
	started = true
	s.node = n
	answer := map[string]any{
		"cpus": map[string]string{
			"all":         n.allCPUs(machine).String(),
			"allocatable": n.cpu.GetAllocatableCPUs().String(),
		},
		"memory": sortedBlocks(call[[]state.Block](n.memory.GetAllocatableMemory)),
	}
	if n.tells("effective-configuration") {
		answer["config"] = inForce
	}
	return answer
}

func readOrDiscover(args startArgs) (*machineInfo, error) {
	if args.Root != "" {
		return discoverIn(args.Root)
	}
	machine := &machineInfo{}
	decodeOpen(args.Machine, machine)
	return machine, nil
}

// make creates the managers in the kubelet's order. Errors have the stage of their manager.
func (n *node) make(
	machine *machineInfo, options map[string]string, reserved reservation, pluginDir string,
) (stage string, err error) {
	config := n.config
	n.topology, err = call2[topologymanager.Manager, error](topologymanager.NewManager,
		machine.Topology, config.TopologyManagerPolicy, config.TopologyManagerScope, options)
	if err != nil {
		return "topology", err
	}
	n.devices, err = call2[*devicemanager.ManagerImpl, error](newDeviceManager,
		filepath.Join(pluginDir, "kubelet.sock"), machine.Topology, n.topology)
	if err != nil {
		return "devices", err
	}
	invoke(n.topology.AddHintProvider, n.devices)
	n.cpu, err = call2[cpumanager.Manager, error](cpumanager.NewManager,
		config.CPUManagerPolicy, config.CPUManagerPolicyOptions, reconcilePeriod, machine,
		reserved.cpus, reserved.amounts, n.stateDir, n.topology)
	if err != nil {
		return "cpu", err
	}
	invoke(n.topology.AddHintProvider, n.cpu)
	if n.memory = absentMemoryManager(); n.memory != nil {
		return "", nil
	}
	n.memory, err = call2[memorymanager.Manager, error](memorymanager.NewManager,
		config.MemoryManagerPolicy, machine, reserved.amounts, config.ReservedMemory,
		n.stateDir, n.topology)
	if err != nil {
		return "memory", err
	}
	invoke(n.topology.AddHintProvider, n.memory)
	return "", nil
}

// start starts the managers in the kubelet's order. The kubelet reads the running containers first.
func (n *node) start() (stage string, err error) {
	containers, running := n.runningContainers()
	n.cpuContainers, n.memoryContainers = maps.Clone(containers), maps.Clone(containers)
	err = call[error](n.cpu.Start, n.activePods, n.gate, n, n.runtime, n.cpuContainers)
	if err != nil {
		return "cpu", fmt.Errorf("start cpu manager error: %w", err)
	}
	err = call[error](n.memory.Start, n.activePods, n.gate, n, n.runtime, n.memoryContainers)
	if err != nil {
		return "memory", fmt.Errorf("start memory manager error: %w", err)
	}
	err = call[error](n.devices.Start, n.activePods, n.gate, maps.Clone(containers), running)
	if err != nil {
		return "devices", err
	}
	return "", nil
}

func (n *node) runningContainers() (containermap.ContainerMap, sets.Set[string]) {
	containers, running := containermap.NewContainerMap(), sets.New[string]()
	for _, pod := range n.pods {
		for _, c := range allContainers(pod) {
			id := containerID(string(pod.UID), c.Name)
			containers.Add(string(pod.UID), c.Name, id)
			running.Insert(id)
		}
	}
	return containers, running
}

func (n *node) activePods() []*v1.Pod { return n.pods }

// stop closes the plugins' connections and stops the goroutines, like the end of a kubelet.
func (n *node) stop() {
	n.gate.stop()
	if n.plugins != nil {
		n.plugins.stop()
	}
	if n.devices != nil {
		if err := call[error](n.devices.Stop); err != nil {
			klog.ErrorS(err, "The device manager did not stop")
		}
	}
}

func (s *server) stop() {
	if s.node != nil {
		s.node.stop()
		s.node = nil
	}
}

// pluginDirectory returns a short name for the directory below stateDir with the Device Manager's
// socket and checkpoint, so that the checkpoint outlives this process.
func (s *server) pluginDirectory(stateDir string) string {
	target := filepath.Join(stateDir, "device-plugins")
	link := filepath.Join(s.sockets, "kubelet")
	if err := os.MkdirAll(target, 0o750); err != nil {
		panic(badRequest{err})
	}
	if err := os.RemoveAll(link); err != nil {
		panic(err)
	}
	if err := os.Symlink(target, link); err != nil {
		panic(err)
	}
	return link
}

func (s *server) state(raw json.RawMessage) any {
	decodeStrict(raw, &empty{})
	n := s.node
	n.reclaim()
	pods := map[string]map[string]container{}
	for _, pod := range n.pods {
		pods[string(pod.UID)] = n.containers(pod)
	}
	files := map[string]string{}
	for _, name := range []string{"cpu_manager_state", "memory_manager_state"} {
		text, err := os.ReadFile(filepath.Join(n.stateDir, name))
		if err != nil {
			if os.IsNotExist(err) {
				continue
			}
			panic(err)
		}
		files[name] = string(text)
	}
	return map[string]any{
		"shared": n.cpu.State().GetDefaultCPUSet().String(),
		"pods":   pods,
		"files":  files,
	}
}

// sortedBlocks sorts blocks by type, then by the text of their NUMA nodes. The kubelet's order is
// random. The protocol has no blocks on nodes with negative ids.
func sortedBlocks(blocks []state.Block) []memoryBlock {
	list := []memoryBlock{}
	for _, b := range blocks {
		numa := append([]int{}, b.NUMAAffinity...)
		sort.Ints(numa)
		if len(numa) > 0 && numa[0] < 0 {
			panic(unsupported{What: "memory on NUMA nodes with negative ids"})
		}
		list = append(list, memoryBlock{NUMA: numa, Type: string(b.Type), Size: b.Size})
	}
	key := func(b memoryBlock) string { return fmt.Sprint(b.Type, b.NUMA) }
	sort.SliceStable(list, func(i, j int) bool { return key(list[i]) < key(list[j]) })
	return list
}
