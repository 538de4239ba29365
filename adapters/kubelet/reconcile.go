package main

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
)

// reconcilePeriod is so short that only the gate determines the loop's pace.
const reconcilePeriod = time.Nanosecond

// loopPanic is a panic of the reconcile loop, passed to the operation that requested the pass.
type loopPanic struct {
	cause any
	trace string
}

// reconcileGate lets the CPU Manager's own loop run one pass at a time. A pass starts by asking
// whether all sources are ready; there the loop reports the end of the previous pass and waits. The
// kubelet's loop never ends, so stop ends its goroutine.
type reconcileGate struct {
	passes  chan chan *loopPanic
	stopped chan struct{}

	// Used only by the loop's goroutine.
	running chan *loopPanic
	failed  *loopPanic
}

func newReconcileGate() *reconcileGate {
	gate := &reconcileGate{passes: make(chan chan *loopPanic), stopped: make(chan struct{})}
	utilruntime.PanicHandlers = nil
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, panicHandler(func(cause any) {
		gate.failed = &loopPanic{cause: cause, trace: string(debug.Stack())}
	}))
	return gate
}

// AddSource implements the kubelet's interface.
func (g *reconcileGate) AddSource(string) {}

// AllReady returns true when the loop may go on.
func (g *reconcileGate) AllReady() bool {
	if !inReconcileLoop() {
		return true
	}
	if g.running != nil {
		g.running <- g.failed
		g.running, g.failed = nil, nil
	}
	select {
	case g.running = <-g.passes:
	case <-g.stopped:
		runtime.Goexit()
	}
	return true
}

func inReconcileLoop() bool {
	callers := make([]uintptr, 8)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "cpumanager.(*manager).reconcileState") {
			return true
		}
		if !more {
			return false
		}
	}
}

func (g *reconcileGate) stop() { close(g.stopped) }

// pass runs one pass of the loop.
func (g *reconcileGate) pass() {
	over := make(chan *loopPanic)
	g.passes <- over
	if failed := <-over; failed != nil {
		panic(*failed)
	}
}

type update struct {
	UID       string `json:"uid"`
	Container string `json:"container"`
	CPUs      string `json:"cpus"`
}

// fakeRuntime replaces the container runtime and records its updates.
type fakeRuntime struct{ updates []update }

func (r *fakeRuntime) UpdateContainerResources(_ context.Context, id string, resources *runtimeapi.ContainerResources) error {
	uid, name, _ := strings.Cut(id, "/")
	r.updates = append(r.updates, update{UID: uid, Container: name, CPUs: resources.Linux.CpusetCpus})
	return nil
}

// containerID returns the runtime's id for the container.
func containerID(uid, name string) string { return uid + "/" + name }

// GetPodStatus reports all containers of a pod on the node as running, except for those that ended.
func (n *node) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	at := n.find(string(uid))
	if at < 0 || !n.running {
		return v1.PodStatus{}, false
	}
	pod := n.pods[at]
	statuses := func(containers []v1.Container) []v1.ContainerStatus {
		var list []v1.ContainerStatus
		for _, c := range containers {
			status := v1.ContainerStatus{Name: c.Name, ContainerID: "fake://" + containerID(string(uid), c.Name)}
			if n.ended[containerID(string(uid), c.Name)] {
				status.State.Terminated = &v1.ContainerStateTerminated{}
			} else {
				status.State.Running = &v1.ContainerStateRunning{}
			}
			list = append(list, status)
		}
		return list
	}
	return v1.PodStatus{
		InitContainerStatuses: statuses(pod.Spec.InitContainers),
		ContainerStatuses:     statuses(pod.Spec.Containers),
	}, true
}

func (s *server) reconcile(raw json.RawMessage) any {
	decodeStrict(raw, &empty{})
	n := s.node
	n.runtime.updates = []update{}
	n.pass()
	return map[string]any{"updates": n.runtime.updates}
}

// pass runs the loop once, if there is one: only the static policy has a loop.
func (n *node) pass() {
	if n.config.CPUManagerPolicy == string(cpumanager.PolicyStatic) {
		n.gate.pass()
	}
}
