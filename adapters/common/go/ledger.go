package adapter

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Allocate chooses count of the free CPUs, or returns an error.
type Allocate func(free CPUSet, count int) (CPUSet, error)

// Ledger is a node for allocators that know CPUs but not pods. It keeps the owners of CPUs, the
// reservation and the state that outlives a restart, as level invariants requires. The allocator
// chooses the CPUs; whether a container gets exclusive CPUs, and how many, follows Kubernetes'
// rules and is decided here.
//
// Claim only policy static, and the features container-removal and restart.
type Ledger struct {
	prepare          func(MachineInfo) Allocate
	allocate         Allocate
	file             string
	all, allocatable CPUSet
	held             held
}

// held has each container's CPUs, by pod uid and container name.
type held map[string]map[string]CPUSet

// NewLedger returns a ledger that hasn't started. Each start prepares an allocator for the machine.
func NewLedger(prepare func(MachineInfo) Allocate) *Ledger { return &Ledger{prepare: prepare} }

// Handlers returns the operations `start`, `admit`, `remove` and `state`.
func (l *Ledger) Handlers() map[string]Handler {
	return map[string]Handler{
		"start": On(l.start), "admit": On(l.admit), "remove": On(l.remove), "state": On(l.state),
	}
}

func (l *Ledger) start(args StartArgs) Answer {
	*l = Ledger{prepare: l.prepare} // a refused start leaves no node
	if args.Machine == nil {
		return NotSupported("discovery")
	}
	all := args.Machine.CPUs()
	reserved := ReadConfig(args.Config).Reserved(all)
	if len(reserved) == 0 || len(reserved.Without(all)) > 0 {
		return StartRefused("cpu", "the static policy requires reserved CPUs on this machine")
	}
	file, before, now := filepath.Join(args.StateDir, "held.json"), held{}, held{}
	if text, err := os.ReadFile(file); err == nil {
		Check(json.Unmarshal(text, &before))
	}
	for _, raw := range args.Pods { // these pods are on the node before they are readmitted
		pod := ReadPod(raw)
		now[pod.Metadata.UID] = before.of(pod)
	}
	if allocatable := all.Without(reserved); len(now.cpus().Without(allocatable)) > 0 {
		return StartRefused("cpu", "a pod holds CPUs that no longer exist")
	}
	l.allocate, l.file, l.held = l.prepare(*args.Machine), file, now
	l.all, l.allocatable = all, all.Without(reserved)
	l.save()
	return OK(NewStarted(l.all, l.allocatable))
}

func (l *Ledger) admit(args AdmitArgs) Answer {
	pod := ReadPod(args.Pod)
	uid := pod.Metadata.UID
	if len(pod.Spec.InitContainers) > 0 || len(pod.Spec.Resources) > 0 {
		return NotSupported("init containers and pod-level resources")
	}
	l.started()
	l.held[uid] = l.held.of(pod)
	for _, container := range pod.Spec.Containers {
		count := pod.ExclusiveCPUs(container)
		if count == 0 || len(l.held[uid][container.Name]) > 0 {
			continue // a readmitted pod keeps its CPUs
		}
		cpus, err := l.allocate(l.allocatable.Without(l.held.cpus()), count)
		if err != nil {
			delete(l.held, uid)
			l.save()
			return AdmissionRefused(UnexpectedAdmissionError, err.Error())
		}
		l.held[uid][container.Name] = cpus
	}
	l.save()
	return OK(Admitted{Containers: l.shown(uid)})
}

func (l *Ledger) remove(args RemoveArgs) Answer {
	l.started()
	if args.Container != "" {
		l.held[args.UID][args.Container] = nil
	} else {
		delete(l.held, args.UID)
	}
	l.save()
	return OK(Done{})
}

func (l *Ledger) state(NoArgs) Answer {
	l.started()
	pods := map[string]map[string]ContainerState{}
	for uid := range l.held {
		pods[uid] = l.shown(uid)
	}
	return OK(State{Shared: l.all.Without(l.held.cpus()), Pods: pods})
}

func (l *Ledger) shown(uid string) map[string]ContainerState {
	containers, shared := map[string]ContainerState{}, l.all.Without(l.held.cpus())
	for name, cpus := range l.held[uid] {
		containers[name] = NewContainerState(cpus, shared)
	}
	return containers
}

func (l *Ledger) started() {
	if l.allocate == nil {
		panic("the node has not started")
	}
}

func (l *Ledger) save() { Check(os.WriteFile(l.file, Must(json.Marshal(l.held)), 0o600)) }

// of returns the CPUs of a pod's containers, if any.
func (h held) of(pod Pod) map[string]CPUSet {
	containers := map[string]CPUSet{}
	for _, container := range pod.Spec.Containers {
		containers[container.Name] = h[pod.Metadata.UID][container.Name]
	}
	return containers
}

// cpus returns all CPUs that containers hold.
func (h held) cpus() (cpus CPUSet) {
	for _, containers := range h {
		for _, own := range containers {
			cpus = append(cpus, own...)
		}
	}
	return cpus
}
