package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containers/nri-plugins/pkg/sysfs"
	"numaproof.example/adapter"
)

// discovered returns the machine as nri-plugins reads it from sysfs, the only input its allocator
// accepts. Nodes without CPUs are omitted and the others are renumbered from 0, because gaps make
// the discovery panic. The discovery has an adapter of its own to show that.
func discovered(machine adapter.MachineInfo) sysfs.System {
	root := adapter.Must(os.MkdirTemp("", "nri-plugins-"))
	defer os.RemoveAll(root)
	write := func(value any, path ...any) {
		file := filepath.Join(root, "devices/system", fmt.Sprint(path...))
		adapter.Check(os.MkdirAll(filepath.Dir(file), 0o700))
		adapter.Check(os.WriteFile(file, fmt.Appendln(nil, value), 0o600))
	}
	withoutCPUs := func(node adapter.Node) bool { return len(node.Cores) == 0 }
	nodes := slices.DeleteFunc(machine.Topology, withoutCPUs)
	sharing := map[adapter.Cache]adapter.CPUSet{}
	for _, node := range nodes {
		for _, core := range node.Cores {
			for _, cache := range slices.Concat(core.Caches, core.UncoreCaches, node.Caches) {
				sharing[cache] = append(sharing[cache], core.Threads...)
			}
		}
	}
	write(machine.CPUs(), "cpu/online")
	for id, node := range nodes {
		cpus := (&adapter.MachineInfo{Topology: nodes[id : id+1]}).CPUs()
		write(cpus, "node/node", id, "/cpulist")
		// The allocator ignores distances.
		write(strings.Repeat("10 ", len(nodes)), "node/node", id, "/distance")
		for _, name := range []string{"online", "has_memory", "has_normal_memory"} {
			write(fmt.Sprint("0-", len(nodes)-1), "node/", name)
		}
		for _, core := range node.Cores {
			for _, cpu := range core.Threads {
				at := fmt.Sprint("cpu/cpu", cpu)
				write(cpus, at, "/node", id, "/cpulist")
				write(core.SocketID, at, "/topology/physical_package_id")
				write(core.ID, at, "/topology/core_id")
				write(adapter.CPUSet(core.Threads), at, "/topology/core_cpus_list")
				for index, cache := range slices.Concat(core.Caches, core.UncoreCaches, node.Caches) {
					in := fmt.Sprint(at, "/cache/index", index)
					write(cache.ID, in, "/id")
					write(cache.Level, in, "/level")
					write(cache.Type, in, "/type")
					write(fmt.Sprint(cache.Size/1024, "K"), in, "/size")
					write(sharing[cache], in, "/shared_cpu_list")
				}
			}
		}
	}
	return adapter.Must(sysfs.DiscoverSystemAt(root,
		sysfs.DiscoverCPUTopology, sysfs.DiscoverMemTopology, sysfs.DiscoverCache))
}
