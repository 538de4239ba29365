// Adapter for the CPU accumulator of the Koordinator scheduler.
package main

import (
	"slices"

	"github.com/koordinator-sh/koordinator/pkg/util/cpuset"

	"numaproof.example/adapter"
	"numaproof.example/koordinator-cpus/nodenumaresource"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "koordinator-cpus", Version: "1.8.0", Language: "Go",
	Kubernetes: []string{"1.35"}, Level: "admission", Operations: []string{"assign"},
	Policies: adapter.Policies{CPU: []string{"none", "static"}}, Features: &[]string{},
	Homepage: "https://koordinator.sh", Issues: "https://github.com/koordinator-sh/koordinator/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"assign": adapter.On(assign)})
}

func assign(args adapter.AssignArgs) adapter.Answer {
	available := cpuset.NewCPUSet(args.Available...)
	cpus, err := nodenumaresource.Take(topologyOf(args.Machine), available, args.Count)
	if err != nil {
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, err.Error())
	}
	return adapter.OK(adapter.Assigned{CPUs: cpus.ToSlice()})
}

// topologyOf numbers cores like lscpu, the source of Koordinator's agent: across the whole machine,
// in the order of their lowest CPUs.
func topologyOf(machine adapter.MachineInfo) *nodenumaresource.CPUTopology {
	type place struct {
		adapter.Core
		node int
	}
	var cores []place
	for _, node := range machine.Topology {
		for _, core := range node.Cores {
			cores = append(cores, place{core, node.ID})
		}
	}
	slices.SortFunc(cores, func(a, b place) int {
		return slices.Min(a.Threads) - slices.Min(b.Threads)
	})
	builder := nodenumaresource.NewCPUTopologyBuilder()
	for number, core := range cores {
		for _, cpu := range core.Threads {
			builder.AddCPUInfo(core.SocketID, core.node, number, cpu)
		}
	}
	return builder.Result()
}
