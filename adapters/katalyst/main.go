// Adapter for the native policy of katalyst-core's CPU plugin. The policy refuses
// reservedSystemCPUs unless the reserved quantities agree with it, so the adapter makes them agree.
// The argument `verbatim` turns that off.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"

	info "github.com/google/cadvisor/info/v1"
	"github.com/kubewharf/katalyst-api/pkg/plugins/skeleton"
	base "github.com/kubewharf/katalyst-core/cmd/base"
	"github.com/kubewharf/katalyst-core/cmd/katalyst-agent/app/agent"
	"github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/cpu/dynamicpolicy/state"
	"github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/cpu/nativepolicy"
	"github.com/kubewharf/katalyst-core/pkg/agent/qrm-plugins/cpu/nativepolicy/calculator"
	"github.com/kubewharf/katalyst-core/pkg/config"
	"github.com/kubewharf/katalyst-core/pkg/metaserver"
	metaagent "github.com/kubewharf/katalyst-core/pkg/metaserver/agent"
	fetcher "github.com/kubewharf/katalyst-core/pkg/metaserver/agent/kubeletconfig"
	"github.com/kubewharf/katalyst-core/pkg/metaserver/kcc"
	metricspool "github.com/kubewharf/katalyst-core/pkg/metrics/metrics-pool"
	"github.com/kubewharf/katalyst-core/pkg/util/machine"
	"k8s.io/klog/v2"
	kubelet "k8s.io/kubelet/config/v1beta1"
	api "k8s.io/kubelet/pkg/apis/resourceplugin/v1alpha1"
	"numaproof.example/adapter"
)

const wholeCores, acrossNodes = "full-pcpus-only", "distribute-cpus-across-numa"

var hello = adapter.Hello{
	Protocol: 1, Name: "katalyst", Version: "0.5.0", Language: "Go",
	Kubernetes: []string{"1.30"}, Level: "placement",
	Operations: []string{"start", "admit", "remove", "state", "assign"},
	Policies:   adapter.Policies{CPU: []string{"static"}},
	Options:    adapter.Options{CPU: []string{wholeCores, acrossNodes}}, Features: &[]string{"restart"},
	Homepage: "https://github.com/kubewharf/katalyst-core", Issues: "https://github.com/kubewharf/katalyst-core/issues",
}

// node is a native policy, its visible state, and the containers of the pods on its node.
type node struct {
	plugin skeleton.QRMPlugin
	kept   state.ReadonlyState
	pods   map[string][]adapter.Container
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	n := &node{}
	adapter.Serve(hello, map[string]adapter.Handler{
		"start": adapter.On(n.start), "admit": adapter.On(n.admit), "remove": adapter.On(n.remove),
		"state": adapter.On(n.state), "assign": adapter.On(assign),
	})
}

// discovered converts cAdvisor's MachineInfo as the agent does.
func discovered(described adapter.MachineInfo) *machine.KatalystMachineInfo {
	raw := &info.MachineInfo{}
	adapter.Convert(described, raw)
	cpus, memory, err := machine.Discover(raw)
	adapter.Check(err)
	return &machine.KatalystMachineInfo{MachineInfo: raw, CPUTopology: cpus, MemoryTopology: memory}
}

func asked(options map[string]string, name string) bool {
	value, _ := strconv.ParseBool(options[name])
	return value
}

// take calls the same function as NativePolicy.takeByTopology with these options.
func take(on *machine.CPUTopology, free adapter.CPUSet, count int, options map[string]string) (adapter.CPUSet, error) {
	available, group := machine.NewCPUSet(free...), 1
	if asked(options, wholeCores) {
		group = on.CPUsPerCore()
	}
	if asked(options, acrossNodes) {
		cpus, err := calculator.TakeByTopologyNUMADistributed(on, available, count, group)
		return cpus.ToSliceInt(), err
	}
	cpus, err := calculator.TakeByTopologyNUMAPacked(on, available, count)
	return cpus.ToSliceInt(), err
}

func assign(args adapter.AssignArgs) adapter.Answer {
	if asked(args.Options, wholeCores) {
		return adapter.NotSupported("assign with full-pcpus-only, which only the policy implements")
	}
	cpus, err := take(discovered(args.Machine).CPUTopology, args.Available, args.Count, args.Options)
	if err != nil {
		return adapter.AdmissionRefused(adapter.UnexpectedAdmissionError, err.Error())
	}
	return adapter.OK(adapter.Assigned{CPUs: cpus})
}

func (n *node) start(args adapter.StartArgs) adapter.Answer {
	*n = node{} // a refused start leaves no node
	var settings kubelet.KubeletConfiguration
	adapter.Check(json.Unmarshal(args.Config, &settings))
	if args.Machine == nil || settings.CPUManagerPolicy != "static" {
		return adapter.NotSupported("discovery, and policies other than static")
	}
	found, options, conf := discovered(*args.Machine), settings.CPUManagerPolicyOptions, config.NewConfiguration()
	conf.GenericQRMPluginConfiguration.StateFileDirectory = args.StateDir
	conf.QRMPluginSocketDirs = []string{args.StateDir}
	conf.EnableFullPhysicalCPUsOnly = asked(options, wholeCores)
	conf.CPUAllocationOption = map[bool]string{false: "packed", true: "distributed"}[asked(options, acrossNodes)]
	all := args.Machine.CPUs()
	reserved := adapter.ReadConfig(args.Config).Reserved(all)
	if settings.ReservedSystemCPUs != "" && (len(os.Args) < 2 || os.Args[1] != "verbatim") {
		count := strconv.Itoa(len(reserved))
		settings.KubeReserved, settings.SystemReserved = map[string]string{"cpu": count}, nil
	}
	about := &metaagent.MetaAgent{KatalystMachineInfo: found}
	about.KubeletConfigFetcher = fetcher.NewFakeKubeletConfigFetcher(settings)
	_, component, err := nativepolicy.NewNativePolicy(&agent.GenericContext{
		GenericContext: &base.GenericContext{EmitterPool: metricspool.DummyMetricsEmitterPool{}},
		MetaServer:     &metaserver.MetaServer{MetaAgent: about, ConfigurationManager: &kcc.DummyConfigurationManager{}},
	}, conf, nil, "cpu_plugin")
	if err != nil {
		return adapter.StartRefused("cpu", err.Error())
	}
	wrapper := component.(*agent.PluginWrapper).GenericPlugin.(*skeleton.PluginRegistrationWrapper)
	n.plugin, n.kept = wrapper.GenericPlugin.(skeleton.QRMPlugin), adapter.Must(nativepolicy.GetReadonlyState())
	n.pods = map[string][]adapter.Container{}
	for _, raw := range args.Pods { // these pods are on the node before they are readmitted
		pod := adapter.ReadPod(raw)
		n.pods[pod.Metadata.UID] = pod.Spec.Containers
	}
	for uid := range n.kept.GetPodEntries() { // clearResidualState would do so eventually
		if n.pods[uid] == nil {
			n.remove(adapter.RemoveArgs{UID: uid})
		}
	}
	if settings.ReservedSystemCPUs == "" { // the plugin reports how many CPUs are reserved, but not which
		reserved = adapter.Must(take(found.CPUTopology, all, len(reserved), options))
	}
	return adapter.OK(adapter.NewStarted(all, all.Without(reserved)))
}

// request is the kubelet's request to the plugin for a container.
func request(pod adapter.Pod, container adapter.Container) *api.ResourceRequest {
	cpus, _ := container.Amounts("cpu")
	return &api.ResourceRequest{
		PodUid: pod.Metadata.UID, PodNamespace: pod.Metadata.Namespace, PodName: pod.Metadata.Name,
		ContainerName: container.Name, ContainerType: api.ContainerType_MAIN, ResourceName: "cpu",
		ResourceRequests: map[string]float64{"cpu": cpus},
		NativeQosClass:   map[bool]string{false: "Burstable", true: "Guaranteed"}[pod.Guaranteed()],
	}
}

func (n *node) admit(args adapter.AdmitArgs) adapter.Answer {
	pod := adapter.ReadPod(args.Pod)
	if len(pod.Spec.InitContainers) > 0 || len(pod.Spec.Resources) > 0 {
		return adapter.NotSupported("init containers and pod-level resources")
	}
	n.pods[pod.Metadata.UID] = pod.Spec.Containers
	for _, container := range pod.Spec.Containers {
		if _, err := n.plugin.Allocate(context.Background(), request(pod, container)); err != nil {
			n.remove(adapter.RemoveArgs{UID: pod.Metadata.UID})
			reason := adapter.UnexpectedAdmissionError
			if threads, broken := err.(nativepolicy.SMTAlignmentError); broken {
				reason = threads.Type()
			}
			return adapter.AdmissionRefused(reason, err.Error())
		}
	}
	return adapter.OK(adapter.Admitted{Containers: n.shown(pod.Metadata.UID)})
}

func (n *node) remove(args adapter.RemoveArgs) adapter.Answer {
	adapter.Must(n.plugin.RemovePod(context.Background(), &api.RemovePodRequest{PodUid: args.UID}))
	delete(n.pods, args.UID)
	return adapter.OK(adapter.Done{})
}

func (n *node) state(adapter.NoArgs) adapter.Answer {
	pods, shared := map[string]map[string]adapter.ContainerState{}, n.kept.GetMachineState().GetDefaultCPUSet()
	for uid := range n.pods {
		pods[uid] = n.shown(uid)
	}
	return adapter.OK(adapter.State{Shared: shared.ToSliceInt(), Pods: pods})
}

func (n *node) shown(uid string) map[string]adapter.ContainerState {
	containers, shared := map[string]adapter.ContainerState{}, n.kept.GetMachineState().GetDefaultCPUSet()
	for _, one := range n.pods[uid] {
		var own adapter.CPUSet
		entry := n.kept.GetAllocationInfo(uid, one.Name)
		if entry != nil && entry.OwnerPoolName == state.PoolNameDedicated {
			own = entry.AllocationResult.ToSliceInt()
		}
		containers[one.Name] = adapter.NewContainerState(own, shared.ToSliceInt())
	}
	return containers
}
