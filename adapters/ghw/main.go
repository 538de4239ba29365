// Adapter for discovery in ghw.
package main

import (
	"maps"
	"slices"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/memory"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "ghw", Version: "0.26.0", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "placement",
	Operations: []string{"discover"},
	Discovers: &[]string{
		"num_cores", "num_sockets", "memory_capacity", "hugepages", "nodes", "node_memory",
		"node_hugepages", "distances", "cores", "core_ids", "socket_ids", "caches",
	},
	Homepage: "https://github.com/jaypipes/ghw",
	Issues:   "https://github.com/jaypipes/ghw/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"discover": adapter.On(discover)})
}

// discover takes the numbers of CPUs and packages from ghw.CPU, and nodes and cores from
// ghw.Topology.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	chroot := ghw.WithChroot(args.Root)
	cpu, err := ghw.CPU(chroot)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	found, err := ghw.Memory(chroot)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	topology, err := ghw.Topology(chroot)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	machine := adapter.MachineInfo{
		NumCores:       int(cpu.TotalHardwareThreads),
		NumSockets:     len(cpu.Processors),
		MemoryCapacity: uint64(found.TotalUsableBytes),
		HugePages:      pools(found.HugePageAmountsBySize),
	}
	sockets := socketsOf(cpu)
	for _, node := range topology.Nodes {
		machine.Topology = append(machine.Topology, nodeOf(node, sockets))
	}
	return adapter.OK(machine)
}

// socketsOf returns the package of each CPU, which ghw's nodes don't include.
func socketsOf(cpu *ghw.CPUInfo) map[int]int {
	sockets := map[int]int{}
	for _, processor := range cpu.Processors {
		for _, core := range processor.Cores {
			for _, thread := range core.LogicalProcessors {
				sockets[thread] = processor.ID
			}
		}
	}
	return sockets
}

func nodeOf(found *ghw.TopologyNode, sockets map[int]int) adapter.Node {
	node := adapter.Node{
		ID:        found.ID,
		Memory:    uint64(found.Memory.TotalUsableBytes),
		HugePages: pools(found.Memory.HugePageAmountsBySize),
	}
	for _, distance := range found.Distances {
		node.Distances = append(node.Distances, uint64(distance))
	}
	for _, one := range found.Cores {
		core := adapter.Core{ID: one.ID, Threads: slices.Sorted(slices.Values(one.LogicalProcessors))}
		core.SocketID = sockets[core.Threads[0]]
		for _, cache := range found.Caches {
			if own(cache, core) {
				core.Caches = append(core.Caches, adapter.Cache{
					Level: int(cache.Level), Size: cache.SizeBytes, Type: cache.Type.String(),
				})
			}
		}
		node.Cores = append(node.Cores, core)
	}
	return node
}

// own reports whether a cache belongs to a single core, as in cAdvisor: its level is 1 or 2, and
// only the core's threads share it.
func own(cache *ghw.MemoryCache, core adapter.Core) bool {
	return cache.Level <= 2 && slices.EqualFunc(cache.LogicalProcessors, core.Threads,
		func(one uint32, other int) bool { return int(one) == other })
}

func pools(found map[uint64]*memory.HugePageAmounts) (pools []adapter.HugePages) {
	for _, size := range slices.Sorted(maps.Keys(found)) {
		pools = append(pools, adapter.HugePages{PageSize: size / 1024, NumPages: uint64(found[size].Total)})
	}
	return pools
}
