// Adapter for the numa-aware plugin of the Volcano scheduler.
package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/utils/cpuset"
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/plugins/numaaware/policy"
	"volcano.sh/volcano/pkg/scheduler/plugins/numaaware/provider/cpumanager"

	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "volcano", Version: "1.14.1", Language: "Go",
	Kubernetes: []string{"1.34"}, Level: "placement",
	Operations: []string{"merge", "assign"},
	Policies: adapter.Policies{
		CPU:      []string{"none", "static"},
		Topology: []string{"none", "best-effort", "restricted", "single-numa-node"},
	},
	Features: &[]string{},
	Homepage: "https://volcano.sh", Issues: "https://github.com/volcano-sh/volcano/issues",
}

var policies = map[string]func(nodes []int) policy.Policy{
	"none":             policy.NewPolicyNone,
	"best-effort":      policy.NewPolicyBestEffort,
	"restricted":       policy.NewPolicyRestricted,
	"single-numa-node": policy.NewPolicySingleNumaNode,
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{
		"merge": adapter.On(merge), "assign": adapter.On(assign),
	})
}

func merge(args adapter.MergeArgs) adapter.Answer {
	var providers []map[string][]policy.TopologyHint
	for _, provider := range args.Providers {
		providers = append(providers, hintsOf(provider))
	}
	best, admit := policies[args.Policy](args.Nodes).Predicate(providers)
	merged := adapter.Hint{Preferred: best.Preferred}
	if best.NUMANodeAffinity != nil {
		merged.NUMA = append([]int{}, best.NUMANodeAffinity.GetBits()...)
	}
	return adapter.OK(adapter.Merged{Hint: merged, Admit: admit})
}

// hintsOf distinguishes a missing list (no preference) from an empty one (unsatisfiable).
func hintsOf(provider adapter.ProviderHints) map[string][]policy.TopologyHint {
	resources := map[string][]policy.TopologyHint{}
	for name, list := range provider {
		if list == nil {
			resources[name] = nil
			continue
		}
		resources[name] = []policy.TopologyHint{}
		for _, hint := range list {
			one := policy.TopologyHint{Preferred: hint.Preferred}
			if hint.NUMA != nil {
				one.NUMANodeAffinity = adapter.Must(bitmask.NewBitMask(hint.NUMA...))
			}
			resources[name] = append(resources[name], one)
		}
	}
	return resources
}

// assign requests a container's CPUs, without affinity, on a node with these free CPUs.
func assign(args adapter.AssignArgs) adapter.Answer {
	container := &v1.Container{Name: "app", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(args.Count), resource.DecimalSI)},
	}}
	node := &api.NumatopoInfo{CPUDetail: detailsOf(args.Machine)}
	left := api.ResNumaSets{"cpu": cpuset.New(args.Available...)}
	cpus := cpumanager.NewProvider().Allocate(container, &policy.TopologyHint{}, node, left)["cpu"]
	if cpus.IsEmpty() && args.Count > 0 { // Allocate returns no more of an error than this
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, "Allocate returned no CPUs")
	}
	return adapter.OK(adapter.Assigned{CPUs: cpus.List()})
}

// detailsOf returns what Volcano's exporter reports for each CPU: the kernel's ids.
func detailsOf(machine adapter.MachineInfo) topology.CPUDetails {
	details := topology.CPUDetails{}
	for _, node := range machine.Topology {
		for _, core := range node.Cores {
			for _, cpu := range core.Threads {
				details[cpu] = topology.CPUInfo{NUMANodeID: node.ID, SocketID: core.SocketID, CoreID: core.ID}
			}
		}
	}
	return details
}
