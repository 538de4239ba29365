package main

import (
	"encoding/json"
	"errors"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/cm/admission"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// cpuOptions lists the static policy's options in this release.
func cpuOptions() []string {
	return withGates(allOptionGates, func() any {
		var names []string
		for _, name := range []string{
			"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "distribute-cpus-across-cores",
			"strict-cpu-reservation", "prefer-align-cpus-by-uncorecache",
		} {
			if cpumanager.CheckPolicyOptionAvailable(name) == nil {
				names = append(names, name)
			}
		}
		return names
	}).([]string)
}

type assignArgs struct {
	Kubernetes string            `json:"kubernetes"`
	Machine    json.RawMessage   `json:"machine"`
	Available  string            `json:"available"`
	Count      int               `json:"count"`
	Options    map[string]string `json:"options"`
}

func (s *server) assign(raw json.RawMessage) any {
	var args assignArgs
	decodeStrict(raw, &args)
	if answer, ok := s.checkRelease(args.Kubernetes); !ok {
		return answer
	}
	return withGates(allOptionGates, func() any { return assignCPUs(args) })
}

// assignCPUs asks a static policy that hasn't started for the CPUs of a Guaranteed pod with one
// container. Nothing is reserved, and the shared pool comes from the request.
func assignCPUs(args assignArgs) any {
	machine := &machineInfo{}
	decodeOpen(args.Machine, machine)
	available, err := cpuset.Parse(args.Available)
	if err != nil {
		panic(badRequest{err})
	}
	topo, err := call2[*topology.CPUTopology, error](topology.Discover, machine)
	if err != nil {
		return refusedStart{"cpu", err.Error()}
	}
	noAffinity := call[topologymanager.Manager](
		topologymanager.NewFakeManagerWithPolicy, topologymanager.NewNonePolicy())
	policy, err := call2[cpumanager.Policy, error](
		cpumanager.NewStaticPolicy, topo, 0, cpuset.New(), noAffinity, args.Options)
	if err != nil {
		return refusedStart{"cpu", err.Error()}
	}
	shared := call[state.State](state.NewMemoryState)
	shared.SetDefaultCPUSet(available)
	pod := guaranteedPod(args.Count)
	err = call[error](policy.Allocate, shared, pod, &pod.Spec.Containers[0])
	if err != nil {
		reason := admission.ErrorReasonUnexpected
		var typed admission.Error
		if errors.As(err, &typed) {
			reason = typed.Type()
		}
		return refusedPod{Reason: reason, Message: err.Error()}
	}
	assigned, _ := shared.GetCPUSet(string(pod.UID), pod.Spec.Containers[0].Name)
	return map[string]string{"cpus": assigned.String()}
}

func guaranteedPod(cpus int) *v1.Pod {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(strconv.Itoa(cpus)),
		v1.ResourceMemory: resource.MustParse("1Gi"),
	}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name:      "app",
		Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts},
	}}}}
	pod.UID = "assign"
	return pod
}
