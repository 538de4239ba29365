// Adapter for {{ name }}: fill in chooseCPUs. When you implement more, claim it in hello.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

var hello = object{
	"protocol": 1, "name": "{{ name }}", "version": "0.1.0", "language": "Go",
	"kubernetes": list{"{{ kubernetes }}"}, "level": "invariants",
	"operations": list{"start", "admit", "remove", "state"},
	"policies":   object{"cpu": list{"none", "static"}}, "options": object{},
	"features": list{"container-removal", "restart"},
}

// YOUR POLICY GOES HERE: chooseCPUs chooses count of the free CPUs, which are sorted and always
// enough. machine is cAdvisor's MachineInfo. At level invariants, any choice is correct.
func chooseCPUs(count int, free []int, machine Machine) []int {
	return slices.Clone(free[:count])
}

// Node has the node's CPUs and their assignments to containers.
type Node struct {
	file                 string
	machine              Machine
	static               bool
	managed, allocatable []int // empty under the none policy
	held                 map[string]map[string][]int
}

func main() {
	node := &Node{}
	serve(map[string]func(Args) object{
		"hello": func(Args) object { return object{"ok": hello} },
		"start": node.start, "admit": node.admit, "remove": node.remove, "state": node.state,
	})
}

func (n *Node) start(args Args) object {
	*n = Node{} // if the start is refused, all other calls are faults
	if args.Machine == nil {
		return object{"unsupported": object{"what": "discovery"}}
	}
	cpus, static := args.Machine.cpus(), args.Config.CPUManagerPolicy == "static"
	managed, allocatable, problem := managedCPUs(args.Config, cpus)
	if problem != "" {
		return refusedStart(problem)
	}
	held, saved := map[string]map[string][]int{}, map[string]map[string][]int{}
	file := filepath.Join(args.StateDir, "held.json")
	if text, err := os.ReadFile(file); err == nil && static {
		check(json.Unmarshal(text, &saved))
	}
	for _, pod := range args.Pods { // running pods, which are admitted again later
		uid := pod.Metadata.UID
		held[uid] = map[string][]int{}
		for _, container := range pod.Spec.Containers {
			held[uid][container.Name] = saved[uid][container.Name]
		}
	}
	node := Node{file, *args.Machine, static, managed, allocatable, held}
	if len(without(node.exclusive(), allocatable)) > 0 {
		return refusedStart("a pod's CPUs are not allocatable")
	}
	*n = node
	n.save()
	shown := object{"all": listed(cpus), "allocatable": listed(allocatable)}
	return object{"ok": object{"cpus": shown, "memory": list{}}}
}

func (n *Node) admit(args Args) object {
	uid, spec := args.Pod.Metadata.UID, args.Pod.Spec
	if len(spec.InitContainers) > 0 || len(spec.Resources) > 0 {
		return object{"unsupported": object{"what": "init containers and pod-level resources"}}
	}
	if n.held[uid] == nil {
		n.held[uid] = map[string][]int{}
	}
	for _, container := range spec.Containers {
		if len(n.held[uid][container.Name]) > 0 {
			continue // admitted before: the container keeps its CPUs
		}
		count, free := 0, without(n.allocatable, n.exclusive())
		if n.static {
			count = exclusiveCount(args.Pod, container)
		}
		if count > len(free) {
			delete(n.held, uid)
			message := fmt.Sprintf("%s: CPUs requested: %d, free: %d", container.Name, count, len(free))
			return object{"refused": object{"reason": "UnexpectedAdmissionError", "message": message}}
		}
		n.held[uid][container.Name] = chooseCPUs(count, free, n.machine)
	}
	n.save()
	return object{"ok": object{"containers": n.shown(uid)}}
}

func (n *Node) remove(args Args) object {
	if args.Container != "" {
		n.held[args.UID][args.Container] = nil
	} else {
		delete(n.held, args.UID)
	}
	n.save()
	return object{"ok": object{}}
}

func (n *Node) state(Args) object {
	pods := object{}
	for uid := range n.held {
		pods[uid] = n.shown(uid)
	}
	return object{"ok": object{"shared": listed(without(n.managed, n.exclusive())), "pods": pods}}
}

func (n *Node) exclusive() (cpus []int) {
	if n.file == "" {
		panic("the node has not started")
	}
	for _, containers := range n.held {
		for _, own := range containers {
			cpus = append(cpus, own...)
		}
	}
	return cpus
}

func (n *Node) shown(uid string) object {
	containers := object{}
	for name, own := range n.held[uid] {
		cpus := own
		if len(own) == 0 {
			cpus = without(n.managed, n.exclusive())
		}
		containers[name] = object{
			"cpus": listed(cpus), "exclusive": listed(own), "memory": list{},
			"affinity": object{"numa": nil, "preferred": false},
		}
	}
	return containers
}

func (n *Node) save() {
	check(os.WriteFile(n.file, must(json.Marshal(n.held)), 0o600))
}
