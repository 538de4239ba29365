// Adapter for CPUs and memory in gopsutil.
package main

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/shirou/gopsutil/v4/common"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "gopsutil", Version: "4.26.10", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "placement",
	Operations: []string{"discover"},
	Discovers:  &[]string{"num_cores", "memory_capacity", "core_ids", "socket_ids"},
	Homepage:   "https://github.com/shirou/gopsutil",
	Issues:     "https://github.com/shirou/gopsutil/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"discover": adapter.On(discover)})
}

// discover returns all CPUs on one node, each as a core. For each CPU, gopsutil only knows the ids
// of its core and package.
func discover(args adapter.DiscoverArgs) adapter.Answer {
	ctx := context.WithValue(context.Background(), common.EnvKey, common.EnvMap{
		common.HostProcEnvKey: filepath.Join(args.Root, "proc"),
		common.HostSysEnvKey:  filepath.Join(args.Root, "sys"),
	})
	logical, err := cpu.CountsWithContext(ctx, true)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	infos, err := cpu.InfoWithContext(ctx)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return adapter.StartRefused("discovery", err.Error())
	}
	var node adapter.Node
	for _, info := range infos {
		node.Cores = append(node.Cores, adapter.Core{
			ID: number(info.CoreID), SocketID: number(info.PhysicalID), Threads: []int{int(info.CPU)},
		})
	}
	return adapter.OK(adapter.MachineInfo{
		NumCores: logical, MemoryCapacity: memory.Total,
		Topology: []adapter.Node{node},
	})
}

// number returns -1 if gopsutil doesn't know the number.
func number(text string) int {
	if text == "" {
		return -1
	}
	return adapter.Must(strconv.Atoi(text))
}
