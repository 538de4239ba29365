package main

import (
	"encoding/json"
	"errors"
	"strconv"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/cm/admission"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

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

// assignCPUs asks a static policy that has never started, so that nothing is reserved and the
// shared pool is what the request says, for the CPUs of a Guaranteed pod with one container.
func assignCPUs(args assignArgs) any {
	machine := &cadvisorapi.MachineInfo{}
	decodeOpen(args.Machine, machine)
	available, err := cpuset.Parse(args.Available)
	if err != nil {
		panic(badRequest{err})
	}
	topology, err := discoverCPUTopology(machine)
	if err != nil {
		return refusedStart{"cpu", err.Error()}
	}
	noAffinity := topologymanager.NewFakeManagerWithPolicy(topologymanager.NewNonePolicy())
	policy, err := newStaticPolicy(topology, noAffinity, args.Options)
	if err != nil {
		return refusedStart{"cpu", err.Error()}
	}
	state := newMemoryState()
	state.SetDefaultCPUSet(available)
	pod := guaranteedPod(args.Count)
	if err := allocate(policy, state, pod); err != nil {
		reason := admission.ErrorReasonUnexpected
		var typed admission.Error
		if errors.As(err, &typed) {
			reason = typed.Type()
		}
		return refusedPod{Reason: reason, Message: err.Error()}
	}
	assigned, _ := state.GetCPUSet(string(pod.UID), pod.Spec.Containers[0].Name)
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
