package main

import (
	"encoding/json"
	"reflect"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// decodePod decodes a manifest and sets the API's defaults (requests default to limits), because no
// pod reaches a kubelet without them.
func decodePod(raw json.RawMessage) *v1.Pod {
	if raw == nil {
		panic(reject("a pod is missing"))
	}
	pod := &v1.Pod{}
	decodeOpen(raw, pod)
	if pod.UID == "" {
		panic(reject("the pod has no metadata.uid"))
	}
	corev1.SetObjectDefaults_Pod(pod)
	setPodLevelDefaults(pod)
	return pod
}

// allContainers lists init containers first.
func allContainers(pod *v1.Pod) []v1.Container {
	list := make([]v1.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	return append(append(list, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

// find returns the index of a pod on the node, or -1.
func (n *node) find(uid string) int {
	for i, pod := range n.pods {
		if string(pod.UID) == uid {
			return i
		}
	}
	return -1
}

func (n *node) place(pod *v1.Pod) {
	if at := n.find(string(pod.UID)); at >= 0 {
		n.pods[at] = pod
		return
	}
	n.pods = append(n.pods, pod)
}

func (n *node) drop(uid string) {
	at := n.find(uid)
	if at < 0 {
		return
	}
	for _, c := range allContainers(n.pods[at]) {
		n.forgetAffinity(uid, c.Name)
		delete(n.ended, containerID(uid, c.Name))
	}
	n.pods = append(n.pods[:at:at], n.pods[at+1:]...)
}

func (n *node) forgetAffinity(uid, name string) {
	if err := call[error](n.topology.RemoveContainer, containerID(uid, name)); err != nil {
		panic(err)
	}
}

// reclaim makes the managers remove stale state. They do so whenever they are asked for hints; for
// a pod without containers, that has no other effect.
func (n *node) reclaim() {
	nobody := &v1.Pod{}
	invoke(n.cpu.GetPodTopologyHints, nobody)
	invoke(n.memory.GetPodTopologyHints, nobody)
	invoke(n.devices.GetPodTopologyHints, nobody)
}

func (s *server) admit(raw json.RawMessage) any {
	var args struct {
		Pod json.RawMessage `json:"pod"`
	}
	decodeStrict(raw, &args)
	n, pod := s.node, decodePod(args.Pod)
	n.place(pod)
	admitted := false
	defer func() {
		if !admitted {
			n.drop(string(pod.UID))
		}
	}()
	var others []*v1.Pod
	for _, other := range n.pods {
		if other.UID != pod.UID {
			others = append(others, other)
		}
	}
	result := call[lifecycle.PodAdmitResult](n.topology.Admit, admitAttributes(pod, others))
	if !result.Admit {
		return n.refuse(result)
	}
	admitted = true
	for _, c := range allContainers(pod) {
		invoke(n.topology.AddContainer, pod, &c, containerID(string(pod.UID), c.Name))
	}
	return map[string]any{"containers": n.containers(pod)}
}

// admitAttributes describes the admission of a new pod, which has a name since 1.36.
func admitAttributes(pod *v1.Pod, others []*v1.Pod) *lifecycle.PodAdmitAttributes {
	attributes := &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others}
	if operation := reflect.ValueOf(attributes).Elem().FieldByName("Operation"); operation.IsValid() {
		operation.SetString(addOperation)
	}
	return attributes
}

func (n *node) containers(pod *v1.Pod) map[string]container {
	list := map[string]container{}
	for _, c := range allContainers(pod) {
		uid := string(pod.UID)
		affinity := call[topologymanager.TopologyHint](n.topology.GetAffinity, uid, c.Name)
		held := container{
			CPUs:      n.cpu.GetCPUAffinity(uid, c.Name).String(),
			Exclusive: n.cpu.GetExclusiveCPUs(uid, c.Name).String(),
			Memory:    sortedBlocks(call[[]state.Block](n.memory.GetMemory, uid, c.Name)),
			Affinity:  fromHint(affinity),
			Devices:   n.heldDevices(uid, c.Name),
		}
		if n.tells("quota") {
			limited := n.hasQuota(pod, &c)
			held.Quota = &limited
		}
		list[c.Name] = held
	}
	return list
}

func (s *server) remove(raw json.RawMessage) any {
	var args struct {
		UID       string  `json:"uid"`
		Container *string `json:"container"`
	}
	decodeStrict(raw, &args)
	n := s.node
	if args.Container != nil {
		n.removeContainer(args.UID, *args.Container)
		return empty{}
	}
	n.drop(args.UID)
	n.reclaim()
	return empty{}
}

// removeContainer removes a container from every manager that knows containers by id.
func (n *node) removeContainer(uid, name string) {
	pod, _ := n.findContainer(uid, name)
	id := containerID(string(pod.UID), name)
	n.cpuContainers.Add(uid, name, id)
	if err := call[error](n.cpu.RemoveContainer, id); err != nil {
		panic(err)
	}
	n.memoryContainers.Add(uid, name, id)
	if err := call[error](n.memory.RemoveContainer, id); err != nil {
		panic(err)
	}
	n.forgetAffinity(uid, name)
	n.ended[id] = true
}

// end lets a container end by itself. As the next container starts, the Memory Manager releases the
// init containers before it. A pod whose app containers have all ended leaves the node.
func (s *server) end(raw json.RawMessage) any {
	var args struct {
		UID       string `json:"uid"`
		Container string `json:"container"`
	}
	decodeStrict(raw, &args)
	n := s.node
	pod, _ := n.findContainer(args.UID, args.Container)
	n.ended[containerID(args.UID, args.Container)] = true
	for i, c := range pod.Spec.InitContainers {
		if c.Name == args.Container {
			next := allContainers(pod)[i+1]
			invoke(n.memory.AddContainer, pod, &next, containerID(args.UID, next.Name))
		}
	}
	for _, c := range pod.Spec.Containers {
		if !n.ended[containerID(args.UID, c.Name)] {
			return empty{}
		}
	}
	n.drop(args.UID)
	n.reclaim()
	return empty{}
}

func (n *node) findContainer(uid, name string) (*v1.Pod, *v1.Container) {
	at := n.find(uid)
	if at < 0 {
		panic(reject("no pod %q on the node", uid))
	}
	return n.pods[at], containerOf(n.pods[at], name)
}

func containerOf(pod *v1.Pod, name string) *v1.Container {
	for _, c := range allContainers(pod) {
		if c.Name == name {
			return &c
		}
	}
	panic(reject("pod %q has no container %q", pod.UID, name))
}
