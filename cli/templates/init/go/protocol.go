// The protocol, with the types of Kubernetes and cAdvisor that it uses. Complete; no need to edit.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

type (
	object = map[string]any
	list   = []any
)

type Request struct {
	ID   int
	Op   string
	Args Args
}

// Args holds the arguments of all claimed operations. Add fields as you need them.
type Args struct {
	Machine        *Machine
	Config         Config
	StateDir       string `json:"state_dir"`
	Pods           []Pod
	Pod            Pod
	UID, Container string
}

type Config struct {
	CPUManagerPolicy, ReservedSystemCPUs string
	KubeReserved, SystemReserved         map[string]any
}

type Machine struct {
	Topology []struct {
		NodeID int `json:"node_id"`
		Cores  []struct {
			CoreID    int   `json:"core_id"`
			SocketID  int   `json:"socket_id"`
			ThreadIDs []int `json:"thread_ids"`
		}
	}
}

type Pod struct {
	Metadata struct{ UID string }
	Spec     struct {
		Containers, InitContainers []Container
		Resources                  object
	}
	Status struct{ QOSClass string }
}

type Container struct {
	Name      string
	Resources struct{ Limits, Requests map[string]any }
}

// serve answers requests until standard input ends.
func serve(operations map[string]func(Args) object) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var request Request
		answer := func() (answer object) {
			defer func() {
				if broken := recover(); broken != nil {
					trace := object{"message": fmt.Sprint(broken), "trace": string(debug.Stack())}
					answer = object{"fault": trace}
				}
			}()
			check(json.Unmarshal(line, &request))
			if operation, found := operations[request.Op]; found {
				return operation(request.Args)
			}
			return object{"unsupported": object{"what": "operation " + request.Op}}
		}()
		answer["id"] = request.ID
		fmt.Println(string(must(json.Marshal(answer))))
	}
}

func refusedStart(message string) object {
	return object{"refused": object{"stage": "cpu", "message": message}}
}

func (m *Machine) cpus() (cpus []int) {
	for _, node := range m.Topology {
		for _, core := range node.Cores {
			cpus = append(cpus, core.ThreadIDs...)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// managedCPUs returns all CPUs that the policy manages (none under the none policy), and those that can
// be exclusive; or the problem with the configuration.
func managedCPUs(config Config, cpus []int) (managed, allocatable []int, problem string) {
	switch config.CPUManagerPolicy {
	case "", "none":
		return nil, nil, ""
	case "static":
		reserved := reservedCPUs(config, cpus)
		if len(reserved) == 0 || len(without(reserved, cpus)) > 0 {
			return nil, nil, "static needs a valid reservation"
		}
		return cpus, without(cpus, reserved), ""
	}
	return nil, nil, "unknown CPU Manager policy " + config.CPUManagerPolicy
}

// reservedCPUs returns the CPUs reserved for the system: those in reservedSystemCPUs, or the lowest.
func reservedCPUs(config Config, cpus []int) []int {
	if config.ReservedSystemCPUs != "" {
		return parsed(config.ReservedSystemCPUs)
	}
	thousandths := 0.0
	for _, amounts := range []map[string]any{config.KubeReserved, config.SystemReserved} {
		if amount, found := amounts["cpu"]; found {
			thousandths += math.Round(quantity(amount) * 1000)
		}
	}
	if count := int(math.Ceil(thousandths / 1000)); count <= len(cpus) {
		return cpus[:count]
	}
	return nil
}

// exclusiveCount returns how many exclusive CPUs a container gets: only whole CPUs, only in
// Guaranteed pods.
func exclusiveCount(pod Pod, container Container) int {
	guaranteed := pod.Status.QOSClass == "Guaranteed"
	if pod.Status.QOSClass == "" { // derive it from the resources
		guaranteed = !slices.ContainsFunc(pod.Spec.Containers, func(one Container) bool {
			return !one.limited("cpu") || !one.limited("memory")
		})
	}
	if cpus, _ := container.amounts("cpu"); guaranteed && cpus == math.Trunc(cpus) {
		return int(cpus)
	}
	return 0
}

// limited reports whether the container has a limit that equals its request.
func (c Container) limited(resource string) bool {
	request, limit := c.amounts(resource)
	return limit > 0 && request == limit
}

// amounts returns the request (default: the limit) and the limit of a resource.
func (c Container) amounts(resource string) (request, limit float64) {
	if amount, found := c.Resources.Limits[resource]; found {
		limit = quantity(amount)
	}
	if amount, found := c.Resources.Requests[resource]; found {
		return quantity(amount), limit
	}
	return limit, limit
}

// quantity parses an amount such as 1500m, 2Gi or 1e3.
func quantity(text any) float64 {
	number, binary := strings.CutSuffix(strings.Replace(fmt.Sprint(text), "K", "k", 1), "i")
	factor := 1.0
	if power := strings.Index("num kMGTPE", number[len(number)-1:]) - 3; power >= -3 {
		number = number[:len(number)-1]
		if binary {
			factor = math.Exp2(float64(10 * power))
		} else {
			number += fmt.Sprintf("e%d", 3*power)
		}
	}
	return must(strconv.ParseFloat(number, 64)) * factor
}

// parsed parses the Linux list format, such as 0-3,8.
func parsed(text string) (cpus []int) {
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		for cpu := must(strconv.Atoi(first)); cpu <= must(strconv.Atoi(last)); cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// listed writes the Linux list format.
func listed(cpus []int) string {
	var parts []string
	for _, cpu := range slices.Sorted(slices.Values(cpus)) {
		parts = append(parts, strconv.Itoa(cpu))
	}
	return strings.Join(parts, ",")
}

func without(cpus, others []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return slices.Contains(others, cpu) })
}

// check and must turn an error into a fault.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
