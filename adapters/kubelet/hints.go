package main

import (
	"encoding/json"
	"strconv"

	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

type hints map[string][]topologymanager.TopologyHint

func fromHint(h topologymanager.TopologyHint) numaHint {
	if h.NUMANodeAffinity == nil {
		return numaHint{Preferred: h.Preferred}
	}
	numa := h.NUMANodeAffinity.GetBits()
	if numa == nil {
		numa = []int{}
	}
	return numaHint{NUMA: numa, Preferred: h.Preferred}
}

func toHint(h numaHint) topologymanager.TopologyHint {
	if h.NUMA == nil {
		return topologymanager.TopologyHint{Preferred: h.Preferred}
	}
	mask, err := bitmask.NewBitMask(h.NUMA...)
	if err != nil {
		panic(badRequest{err})
	}
	return topologymanager.TopologyHint{NUMANodeAffinity: mask, Preferred: h.Preferred}
}

// fromHints distinguishes a missing list (no preference) from an empty one (unsatisfiable).
func fromHints(provider hints) map[string][]numaHint {
	resources := map[string][]numaHint{}
	for name, list := range provider {
		if list == nil {
			resources[name] = nil
			continue
		}
		resources[name] = []numaHint{}
		for _, h := range list {
			resources[name] = append(resources[name], fromHint(h))
		}
	}
	return resources
}

func toHints(resources map[string][]numaHint) hints {
	if resources == nil {
		return nil
	}
	provider := hints{}
	for name, list := range resources {
		if list == nil {
			provider[name] = nil
			continue
		}
		provider[name] = []topologymanager.TopologyHint{}
		for _, h := range list {
			provider[name] = append(provider[name], toHint(h))
		}
	}
	return provider
}

func (s *server) hints(raw json.RawMessage) any {
	var args struct {
		Pod       json.RawMessage `json:"pod"`
		Container *string         `json:"container"`
	}
	decodeStrict(raw, &args)
	n, pod := s.node, decodePod(args.Pod)
	ask := func(provider topologymanager.HintProvider) map[string][]numaHint {
		if args.Container == nil {
			return fromHints(call[hints](provider.GetPodTopologyHints, pod))
		}
		return fromHints(call[hints](provider.GetTopologyHints, pod, containerOf(pod, *args.Container)))
	}
	answer := map[string]any{"cpu": ask(n.cpu), "memory": ask(n.memory)}
	if n.hasPlugins() {
		answer["devices"] = ask(n.devices)
	}
	return answer
}

type mergeArgs struct {
	Kubernetes string                  `json:"kubernetes"`
	Nodes      []int                   `json:"nodes"`
	Policy     string                  `json:"policy"`
	Options    map[string]string       `json:"options"`
	Distances  map[string][]uint64     `json:"distances"`
	Providers  []map[string][]numaHint `json:"providers"`
}

// allOptionGates turns on the options of every maturity.
var allOptionGates = map[string]bool{
	"CPUManagerPolicyAlphaOptions":      true,
	"CPUManagerPolicyBetaOptions":       true,
	"TopologyManagerPolicyAlphaOptions": true,
	"TopologyManagerPolicyBetaOptions":  true,
}

func (s *server) merge(raw json.RawMessage) any {
	var args mergeArgs
	decodeStrict(raw, &args)
	if answer, ok := s.checkRelease(args.Kubernetes); !ok {
		return answer
	}
	return withGates(allOptionGates, func() any { return mergeHints(args) })
}

func mergeHints(args mergeArgs) any {
	policy, err := mergePolicy(args)
	if err != nil {
		return refusedStart{"topology", err.Error()}
	}
	var providers []map[string][]topologymanager.TopologyHint
	for _, provider := range args.Providers {
		providers = append(providers, toHints(provider))
	}
	best, admit := call2[topologymanager.TopologyHint, bool](policy.Merge, providers)
	return map[string]any{"hint": fromHint(best), "admit": admit}
}

func mergePolicy(args mergeArgs) (topologymanager.Policy, error) {
	if args.Policy == topologymanager.PolicyNone {
		return topologymanager.NewNonePolicy(), nil
	}
	options, err := call2[topologymanager.PolicyOptions, error](topologymanager.NewPolicyOptions, args.Options)
	if err != nil {
		return nil, err
	}
	var nodes []numaNode
	for _, id := range args.Nodes {
		nodes = append(nodes, numaNode{Id: id, Distances: args.Distances[strconv.Itoa(id)]})
	}
	numa, err := topologymanager.NewNUMAInfo(nodes, options)
	if err != nil {
		return nil, err
	}
	switch args.Policy {
	case topologymanager.PolicyBestEffort:
		return topologymanager.NewBestEffortPolicy(numa, options), nil
	case topologymanager.PolicyRestricted:
		return topologymanager.NewRestrictedPolicy(numa, options), nil
	case topologymanager.PolicySingleNumaNode:
		return topologymanager.NewSingleNumaNodePolicy(numa, options), nil
	}
	panic(reject("no Topology Manager policy %q", args.Policy))
}
