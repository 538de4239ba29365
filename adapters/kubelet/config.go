package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
	"k8s.io/kubernetes/pkg/kubelet/stats/pidlimit"
	"k8s.io/utils/cpuset"
)

// useGates sets the feature gates of the kubelet's packages to the release's defaults with these
// overrides.
func useGates(overrides map[string]bool) error {
	gates := pristineGates.DeepCopy()
	if err := gates.SetFromMap(overrides); err != nil {
		return err
	}
	setGates(gates)
	return nil
}

func setGates(gates mutableGates) {
	utilfeature.DefaultMutableFeatureGate = gates
	utilfeature.DefaultFeatureGate = gates
}

// withGates runs f with feature gates other than those of the running node.
func withGates(overrides map[string]bool, f func() any) any {
	before := utilfeature.DefaultMutableFeatureGate
	defer setGates(before)
	if err := useGates(overrides); err != nil {
		panic(err)
	}
	return f()
}

// loadConfig decodes, defaults and validates a KubeletConfiguration as the kubelet does with its
// configuration file and command line, and sets the configured feature gates.
func loadConfig(raw json.RawMessage, flags []string) (*kubeletconfig.KubeletConfiguration, error) {
	// Defaulting also reads the gates and must not see those of an earlier start.
	setGates(pristineGates.DeepCopy())
	if err := checkFlags(flags); err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("failed to decode: %w", err)
	}
	fields["apiVersion"] = json.RawMessage(`"kubelet.config.k8s.io/v1beta1"`)
	fields["kind"] = json.RawMessage(`"KubeletConfiguration"`)
	fields["failCgroupV1"] = json.RawMessage(`false`) // the host's cgroups don't matter here
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, err
	}
	config, err := call2[*kubeletconfig.KubeletConfiguration, error](codec.DecodeKubeletConfiguration, codecs, data)
	if err != nil {
		return nil, err
	}
	defaultEviction(config)
	if err := override(config, flags); err != nil {
		return nil, err
	}
	if err := useGates(config.FeatureGates); err != nil {
		return nil, fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err)
	}
	if err := validation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate); err != nil {
		return nil, fmt.Errorf("failed to validate kubelet configuration, error: %w", err)
	}
	return config, nil
}

// defaultEviction adds defaults that depend on the operating system and are therefore missing from
// the configuration type's defaults.
func defaultEviction(config *kubeletconfig.KubeletConfiguration) {
	if config.EvictionHard == nil {
		config.EvictionHard = maps.Clone(eviction.DefaultEvictionHard)
	} else if mergesDefaultEviction(config) {
		merged := maps.Clone(eviction.DefaultEvictionHard)
		maps.Copy(merged, config.EvictionHard)
		config.EvictionHard = merged
	}
}

// topologyOptions returns the Topology Manager's options that the kubelet's command passes on.
func topologyOptions(config *kubeletconfig.KubeletConfiguration) (map[string]string, error) {
	if utilfeature.DefaultFeatureGate.Enabled(features.TopologyManagerPolicyOptions) {
		return config.TopologyManagerPolicyOptions, nil
	}
	if config.TopologyManagerPolicyOptions != nil {
		return nil, fmt.Errorf("topology manager policy options %v require feature gates %q enabled",
			config.TopologyManagerPolicyOptions, features.TopologyManagerPolicyOptions)
	}
	return nil, nil
}

// reservation returns what the kubelet's command and container manager derive from the
// configuration: the CPUs reserved by name, and the amounts that aren't allocatable.
type reservation struct {
	cpus    cpuset.CPUSet
	amounts v1.ResourceList
}

func reserve(config *kubeletconfig.KubeletConfiguration, machine *machineInfo) (reservation, error) {
	none := reservation{}
	cpus, err := reservedCPUs(machine, config.ReservedSystemCPUs)
	if err != nil {
		return none, err
	}
	// The effective configuration shows the CPUs only in a map that exists.
	systemReserved := config.SystemReserved
	if cpus.Size() > 0 {
		delete(config.KubeReserved, "cpu")
		if systemReserved == nil {
			systemReserved = map[string]string{}
		}
		systemReserved["cpu"] = strconv.Itoa(cpus.Size())
	}
	kube, err := resourceList(config.KubeReserved)
	if err != nil {
		return none, fmt.Errorf("--kube-reserved value failed to parse: %w", err)
	}
	system, err := resourceList(systemReserved)
	if err != nil {
		return none, fmt.Errorf("--system-reserved value failed to parse: %w", err)
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, config.EvictionHard, nil, nil, nil)
	if err != nil {
		return none, err
	}
	capacity := cadvisor.CapacityFromMachineInfo(machine)
	evicted := evictionReservation(thresholds, capacity)
	amounts := v1.ResourceList{}
	for name := range capacity {
		sum := resource.NewQuantity(0, resource.DecimalSI)
		for _, part := range []v1.ResourceList{system, kube, evicted} {
			sum.Add(part[name])
		}
		if !sum.IsZero() {
			amounts[name] = *sum
		}
	}
	return reservation{cpus: cpus, amounts: amounts}, nil
}

func reservedCPUs(machine *machineInfo, list string) (cpuset.CPUSet, error) {
	none := cpuset.New()
	if list == "" {
		return none, nil
	}
	topo, err := call2[*topology.CPUTopology, error](topology.Discover, machine)
	if err != nil {
		return none, fmt.Errorf("unable to discover CPU topology info: %s", err)
	}
	reserved, err := cpuset.Parse(list)
	if err != nil {
		return none, fmt.Errorf("unable to parse reserved-cpus list: %s", err)
	}
	if all := topo.CPUDetails.CPUs(); !reserved.IsSubsetOf(all) {
		return none, fmt.Errorf("reserved-cpus: %s is not a subset of online-cpus: %s", list, all)
	}
	return reserved, nil
}

func resourceList(amounts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, text := range amounts {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, pidlimit.PIDs:
		default:
			return nil, fmt.Errorf("cannot reserve %q resource", name)
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("failed to parse quantity %q for %q resource: %w", text, name, err)
		}
		if amount.Sign() == -1 {
			return nil, fmt.Errorf("resource quantity for %q cannot be negative: %v", name, text)
		}
		if v1.ResourceName(name) == v1.ResourceCPU {
			roundCPUs(&amount)
		}
		list[v1.ResourceName(name)] = amount
	}
	return list, nil
}

func evictionReservation(thresholds []evictionapi.Threshold, capacity v1.ResourceList) v1.ResourceList {
	held := map[evictionapi.Signal]v1.ResourceName{
		evictionapi.SignalMemoryAvailable: v1.ResourceMemory,
		evictionapi.SignalNodeFsAvailable: v1.ResourceEphemeralStorage,
	}
	list := v1.ResourceList{}
	for _, threshold := range thresholds {
		name, known := held[threshold.Signal]
		if !known || threshold.Operator != evictionapi.OpLessThan {
			continue
		}
		whole := capacity[name]
		list[name] = *evictionapi.GetThresholdQuantity(threshold.Value, &whole)
	}
	return list
}
