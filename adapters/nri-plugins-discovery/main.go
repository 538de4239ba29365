// Adapter for discovery in nri-plugins.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/containers/nri-plugins/pkg/sysfs"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "nri-plugins discovery", Version: "0.14.0", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "placement",
	Operations: []string{"discover"},
	Discovers: &[]string{
		"num_cores", "num_sockets", "nodes", "node_memory", "distances", "cores", "core_ids",
		"socket_ids", "caches", "uncore_caches", "node_caches", "cache_ids",
	},
	Homepage: "https://github.com/containers/nri-plugins",
	Issues:   "https://github.com/containers/nri-plugins/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"discover": adapter.On(discover)})
}

// discover omits Speed Select, because nri-plugins would read it from the host.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	sys := filepath.Join(args.Root, "sys")
	system, err := sysfs.DiscoverSystemAt(sys, sysfs.DiscoverCPUTopology, sysfs.DiscoverMemTopology,
		sysfs.DiscoverCache)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	machine := adapter.MachineInfo{
		NumCores: system.OnlineCPUs().Size(), NumSockets: system.SocketCount(),
	}
	for _, id := range system.NodeIDs() {
		node := nodeOf(system, system.Node(id))
		// Without node directories, MemoryInfo reads the host's /proc/meminfo.
		if _, err := os.Stat(filepath.Join(sys, "devices/system/node", fmt.Sprint("node", id))); err == nil {
			node.Memory = adapter.Must(system.Node(id).MemoryInfo()).MemTotal
		}
		machine.Topology = append(machine.Topology, node)
	}
	return adapter.OK(machine)
}

// nodeOf returns a node with the CPUs in its cpulist. If a core spans nodes, each node has its own
// threads of the core.
func nodeOf(system sysfs.System, found sysfs.Node) adapter.Node {
	node := adapter.Node{ID: found.ID()}
	for _, distance := range found.Distance() {
		node.Distances = append(node.Distances, uint64(distance))
	}
	left := found.CPUSet().Intersection(system.OnlineCPUs())
	for !left.IsEmpty() {
		first := system.CPU(left.List()[0])
		threads := first.ThreadCPUSet().Intersection(left)
		core := adapter.Core{ID: first.CoreID(), SocketID: first.PackageID(), Threads: threads.List()}
		node.Cores = append(node.Cores, core)
		left = left.Difference(threads)
	}
	for index := range node.Cores {
		core := &node.Cores[index]
		for _, cache := range system.CPU(core.Threads[0]).GetCaches() {
			place(cache, core, &node)
		}
	}
	return node
}

// place decides where cAdvisor puts a cache, assuming that all cores of a node are equal.
// nri-plugins lists all caches of a CPU together.
func place(found *sysfs.Cache, core *adapter.Core, node *adapter.Node) {
	cache := adapter.Cache{
		ID: found.ID(), Size: found.Size(), Type: found.Type().String(), Level: found.Level(),
	}
	sharing := found.SharedCPUSet().Size()
	switch {
	case cache.Level > 2 && sharing != len(core.Threads)*len(node.Cores):
		core.UncoreCaches = append(core.UncoreCaches, cache)
	case cache.Level > 2 && !slices.Contains(node.Caches, cache):
		node.Caches = append(node.Caches, cache)
	case cache.Level <= 2 && sharing == len(core.Threads):
		core.Caches = append(core.Caches, cache)
	}
}
