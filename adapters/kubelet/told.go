package main

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubelet/config/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Fields that answers contain only if the start asked for them.

func (n *node) tells(what string) bool { return slices.Contains(n.tell, what) }

// hasQuota decides about a container's CFS quota like
// kubeGenericRuntimeManager.generateLinuxContainerResources, which is reimplemented here because it
// needs a whole runtime manager.
func (n *node) hasQuota(pod *v1.Pod, c *v1.Container) bool {
	limit := c.Resources.Limits.Cpu()
	if limit.IsZero() {
		limit = podLimit(pod)
	}
	if !n.config.CPUCFSQuota || limit.IsZero() {
		return false
	}
	return !sparesExclusive() || !n.hasCPUsOfItsOwn(pod, c)
}

// refuse returns the status and event that Kubelet.rejectPod writes for a rejected pod.
func (n *node) refuse(result lifecycle.PodAdmitResult) refusedPod {
	answer := refusedPod{Reason: result.Reason, Message: result.Message}
	if n.tells("refused-pods") {
		answer.Pod = &fate{
			Phase:   v1.PodFailed,
			Reason:  result.Reason,
			Message: "Pod was rejected: " + result.Message,
			Event:   result.Message,
		}
	}
	return answer
}

// inForce has the configuration fields that concern the managers.
var inForce = []string{"cpuManagerPolicy", "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod",
	"memoryManagerPolicy", "topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions",
	"reservedSystemCPUs", "kubeReserved", "systemReserved", "evictionHard", "cpuCFSQuota"}

// configInForce returns the configuration with its defaults, as fields of a KubeletConfiguration.
func configInForce(config *kubeletconfig.KubeletConfiguration) map[string]json.RawMessage {
	known, _, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		panic(err)
	}
	versioned := &v1beta1.KubeletConfiguration{}
	if err := known.Convert(config, versioned, nil); err != nil {
		panic(err)
	}
	text, err := json.Marshal(versioned)
	if err != nil {
		panic(err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool {
		return !slices.Contains(inForce, name)
	})
	return fields
}
