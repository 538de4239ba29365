// Adapter for CPU discovery and CPU assignment in dra-driver-cpu.
package main

import (
	"cmp"
	"os"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/kubernetes-sigs/dra-driver-cpu/pkg/cpuinfo"
	"github.com/kubernetes-sigs/dra-driver-cpu/pkg/cpumanager"
	"k8s.io/utils/cpuset"
	"numaproof.example/adapter"
)

const (
	alignByCache = "prefer-align-cpus-by-uncorecache"
	acrossCores  = "distribute-cpus-across-cores"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "dra-driver-cpu", Version: "0.2.0", Language: "Go",
	// The assignment was copied during the development of 1.35. 1.34 to 1.37 assign the same CPUs
	// unless distribute-cpus-across-numa is on, which the driver does not export.
	Kubernetes: []string{"1.34", "1.35", "1.36", "1.37"}, Level: "placement",
	Operations: []string{"assign", "discover"},
	Options:    adapter.Options{CPU: []string{alignByCache, acrossCores}},
	Discovers:  &[]string{"num_cores", "num_sockets", "nodes", "cores", "core_ids", "socket_ids"},
	Homepage:   "https://github.com/kubernetes-sigs/dra-driver-cpu",
	Issues:     "https://github.com/kubernetes-sigs/dra-driver-cpu/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{
		"assign": adapter.On(assign), "discover": adapter.On(discover),
	})
}

// discover lets the driver read the tree: it looks for /sys below HOST_ROOT.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	adapter.Check(os.Setenv("HOST_ROOT", args.Root))
	found, err := cpuinfo.NewSystemCPUInfo().GetCPUTopology(logr.Discard())
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	return adapter.OK(machineOf(found))
}

// core identifies a core for the driver.
type core struct{ node, socket, cluster, id int }

// machineOf converts the driver's topology to a MachineInfo.
func machineOf(found *cpuinfo.CPUTopology) adapter.MachineInfo {
	machine := adapter.MachineInfo{
		NumCores: found.NumCPUs, NumPhysicalCores: found.NumCores, NumSockets: found.NumSockets,
	}
	threads := map[core][]int{}
	for _, cpu := range found.CPUDetails.CPUs().List() {
		info := found.CPUDetails[cpu]
		key := core{info.NUMANodeID, info.SocketID, info.ClusterID, info.CoreID}
		threads[key] = append(threads[key], cpu)
	}
	for _, id := range found.CPUDetails.NUMANodes().List() {
		node := adapter.Node{ID: id}
		for key, cpus := range threads {
			if key.node == id {
				one := adapter.Core{ID: key.id, SocketID: key.socket, Threads: cpus}
				node.Cores = append(node.Cores, one)
			}
		}
		slices.SortFunc(node.Cores, func(a, b adapter.Core) int {
			return cmp.Compare(a.Threads[0], b.Threads[0])
		})
		machine.Topology = append(machine.Topology, node)
	}
	return machine
}

// assign calls the function that allocates the CPUs of a claim in the driver's grouped mode.
func assign(args adapter.AssignArgs) adapter.Answer {
	options := map[string]bool{}
	for name, value := range args.Options {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return adapter.StartRefused("cpu", err.Error())
		}
		options[name] = on
	}
	sorting := cpumanager.CPUSortingStrategyPacked
	if options[acrossCores] {
		sorting = cpumanager.CPUSortingStrategySpread
	}
	cpus, err := cpumanager.TakeByTopologyNUMAPacked(logr.Discard(), topologyOf(args.Machine),
		cpuset.New(args.Available...), args.Count, sorting, options[alignByCache])
	if err != nil {
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, err.Error())
	}
	return adapter.OK(adapter.Assigned{CPUs: cpus.List()})
}

// topologyOf returns what GetCPUTopology would for this machine: the kernel's ids, and counts of
// distinct ids.
func topologyOf(machine adapter.MachineInfo) *cpuinfo.CPUTopology {
	topology := &cpuinfo.CPUTopology{CPUDetails: cpuinfo.CPUDetails{}}
	nodes, sockets, caches := map[int]bool{}, map[int]bool{}, map[int]bool{}
	cores := map[core]bool{}
	for _, node := range machine.Topology {
		for _, one := range node.Cores {
			cache := cacheOf(node, one)
			if cache >= 0 {
				caches[cache] = true
			}
			nodes[node.ID], sockets[one.SocketID] = true, true
			cores[core{socket: one.SocketID, id: one.ID}] = true
			for _, cpu := range one.Threads {
				topology.CPUDetails[cpu] = cpuinfo.CPUInfo{
					CpuID: cpu, CoreID: one.ID, SocketID: one.SocketID, ClusterID: -1,
					NUMANodeID: node.ID, UncoreCacheID: cache,
				}
			}
		}
	}
	topology.NumCPUs, topology.NumCores = len(topology.CPUDetails), len(cores)
	topology.NumNUMANodes, topology.NumSockets = len(nodes), len(sockets)
	topology.NumUncoreCache = len(caches)
	return topology
}

// cacheOf returns the id of a core's level 3 cache, which cAdvisor assigns to the core or to the
// whole node, or -1.
func cacheOf(node adapter.Node, one adapter.Core) int {
	for _, cache := range slices.Concat(one.UncoreCaches, node.Caches) {
		if cache.Level == 3 {
			return cache.ID
		}
	}
	return -1
}
