// Adapter for CPUs and memory in prometheus/procfs.
package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "prometheus/procfs", Version: "0.23.0", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "placement",
	Operations: []string{"discover"},
	Discovers: &[]string{
		"num_cores", "num_sockets", "memory_capacity", "cores", "core_ids", "socket_ids",
	},
	Homepage: "https://github.com/prometheus/procfs",
	Issues:   "https://github.com/prometheus/procfs/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"discover": adapter.On(discover)})
}

// discover returns all cores on one node, because procfs doesn't read nodes.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	sys, err := sysfs.NewFS(filepath.Join(args.Root, "sys"))
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	cores, cpus, err := coresOf(sys)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	proc, err := procfs.NewFS(filepath.Join(args.Root, "proc"))
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	memory, err := proc.Meminfo()
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	sockets := map[int]bool{}
	for _, core := range cores {
		sockets[core.SocketID] = true
	}
	machine := adapter.MachineInfo{
		NumCores: cpus, NumSockets: len(sockets),
		Topology: []adapter.Node{{Cores: cores}},
	}
	if memory.MemTotalBytes != nil {
		machine.MemoryCapacity = *memory.MemTotalBytes
	}
	return adapter.OK(machine)
}

// coresOf groups the online CPUs into cores by their thread siblings, and counts the online CPUs.
// CPUs without topology are counted but belong to no core.
func coresOf(sys sysfs.FS) (cores []adapter.Core, cpus int, err error) {
	found, err := sys.CPUs()
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	for _, cpu := range found {
		online, err := cpu.Online()
		if !online && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		cpus++
		topology, err := cpu.Topology()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if !seen[topology.ThreadSiblingsList] {
			seen[topology.ThreadSiblingsList] = true
			cores = append(cores, coreOf(topology))
		}
	}
	return cores, cpus, nil
}

func coreOf(topology *sysfs.CPUTopology) adapter.Core {
	return adapter.Core{
		ID:       adapter.Must(strconv.Atoi(topology.CoreID)),
		SocketID: adapter.Must(strconv.Atoi(topology.PhysicalPackageID)),
		Threads:  adapter.Must(adapter.ParseCPUSet(topology.ThreadSiblingsList)),
	}
}
