// Adapter for the NUMA topology policies of the Koordinator scheduler.
package main

import (
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext/topologymanager"
	"github.com/koordinator-sh/koordinator/pkg/util/bitmask"

	"numaproof.example/adapter"
)

var hello = adapter.Hello{
	Protocol: 1, Name: "koordinator", Version: "1.8.0", Language: "Go",
	Kubernetes: []string{"1.35"}, Level: "placement", Operations: []string{"merge"},
	Policies: adapter.Policies{
		Topology: []string{"none", "best-effort", "restricted", "single-numa-node"},
	},
	Features: &[]string{},
	Homepage: "https://koordinator.sh", Issues: "https://github.com/koordinator-sh/koordinator/issues",
}

func main() {
	adapter.Serve(hello, map[string]adapter.Handler{"merge": adapter.On(merge)})
}

func policyOf(name string, nodes []int) topologymanager.Policy {
	switch name {
	case "best-effort":
		return topologymanager.NewBestEffortPolicy(nodes)
	case "restricted":
		return topologymanager.NewRestrictedPolicy(nodes)
	case "single-numa-node":
		return topologymanager.NewSingleNumaNodePolicy(nodes)
	}
	return topologymanager.NewNonePolicy()
}

// merge calls the policies for a pod that shares its NUMA nodes with others: no exclusive policy.
func merge(args adapter.MergeArgs) adapter.Answer {
	var providers []map[string][]topologymanager.NUMATopologyHint
	for _, provider := range args.Providers {
		providers = append(providers, hintsOf(provider))
	}
	best, admit, _ := policyOf(args.Policy, args.Nodes).Merge(providers, "", nil)
	merged := adapter.Hint{Preferred: best.Preferred}
	if best.NUMANodeAffinity != nil {
		merged.NUMA = append([]int{}, best.NUMANodeAffinity.GetBits()...)
	}
	return adapter.OK(adapter.Merged{Hint: merged, Admit: admit})
}

// hintsOf distinguishes a missing list (no preference) from an empty one (unsatisfiable).
func hintsOf(provider adapter.ProviderHints) map[string][]topologymanager.NUMATopologyHint {
	resources := map[string][]topologymanager.NUMATopologyHint{}
	for name, list := range provider {
		if list == nil {
			resources[name] = nil
			continue
		}
		resources[name] = []topologymanager.NUMATopologyHint{}
		for _, hint := range list {
			one := topologymanager.NUMATopologyHint{Preferred: hint.Preferred}
			if hint.NUMA != nil {
				one.NUMANodeAffinity = adapter.Must(bitmask.NewBitMask(hint.NUMA...))
			}
			resources[name] = append(resources[name], one)
		}
	}
	return resources
}
