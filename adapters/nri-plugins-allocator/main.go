// Adapter for the CPU allocator of nri-plugins.
package main

import (
	"encoding/json"

	"github.com/containers/nri-plugins/pkg/cpuallocator"
	"github.com/containers/nri-plugins/pkg/sysfs"
	"github.com/containers/nri-plugins/pkg/utils/cpuset"
	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "nri-plugins cpuallocator", Version: "0.14.0", Language: "Go",
	Kubernetes: []string{"1.37"}, Level: "invariants",
	Operations: []string{"assign", "start", "admit", "remove", "state"},
	Policies:   adapter.Policies{CPU: []string{"static"}},
	Features:   &[]string{"container-removal", "restart"},
	Homepage:   "https://github.com/containers/nri-plugins",
	Issues:     "https://github.com/containers/nri-plugins/issues",
}

func main() {
	handlers := adapter.NewLedger(prepare).Handlers()
	handlers["assign"] = adapter.On(assign)
	adapter.Serve(hello, handlers)
}

// systems caches discovered machines, because writing and reading a tree takes long.
var systems = map[string]sysfs.System{}

// prepare creates an allocator for a machine. It allocates CPUs of normal priority, the default of
// the topology-aware policy.
func prepare(machine adapter.MachineInfo) adapter.Allocate {
	described := string(adapter.Must(json.Marshal(machine)))
	if systems[described] == nil {
		systems[described] = discovered(machine)
	}
	allocator := cpuallocator.NewCPUAllocator(systems[described])
	return func(free adapter.CPUSet, count int) (adapter.CPUSet, error) {
		left := cpuset.New(free...)
		cpus, err := allocator.AllocateCpus(&left, count, cpuallocator.PriorityNormal.Option())
		return cpus.List(), err
	}
}

func assign(args adapter.AssignArgs) adapter.Answer {
	cpus, err := prepare(args.Machine)(args.Available, args.Count)
	if err != nil {
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, err.Error())
	}
	return adapter.OK(adapter.Assigned{CPUs: cpus})
}
