package adapter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config is a KubeletConfiguration as far as it says which CPUs are reserved.
type Config struct {
	CPUManagerPolicy, ReservedSystemCPUs string
	KubeReserved, SystemReserved         map[string]any
}

// ReadConfig reads what it knows of a KubeletConfiguration.
func ReadConfig(raw json.RawMessage) (config Config) {
	Check(json.Unmarshal(raw, &config))
	return config
}

// Reserved are the CPUs kept for the system: those named, else as many as are reserved, lowest
// first; none where more are reserved than there are.
func (c Config) Reserved(cpus CPUSet) CPUSet {
	if c.ReservedSystemCPUs != "" {
		return Must(ParseCPUSet(c.ReservedSystemCPUs))
	}
	thousandths := 0.0
	for _, amounts := range []map[string]any{c.KubeReserved, c.SystemReserved} {
		if amount, found := amounts["cpu"]; found {
			thousandths += math.Round(Quantity(amount) * 1000)
		}
	}
	if count := int(math.Ceil(thousandths / 1000)); count <= len(cpus) {
		return cpus[:count]
	}
	return nil
}

// Pod is a v1.Pod as far as it says who gets exclusive CPUs.
type Pod struct {
	Metadata struct{ UID, Name, Namespace string }
	Spec     struct {
		Containers, InitContainers []Container
		Resources                  map[string]any
	}
	Status struct{ QOSClass string }
}

// Container is one of a pod.
type Container struct {
	Name          string
	RestartPolicy string
	Resources     struct{ Limits, Requests map[string]any }
}

// ReadPod reads what it knows of a manifest.
func ReadPod(raw json.RawMessage) (pod Pod) {
	Check(json.Unmarshal(raw, &pod))
	return pod
}

// Guaranteed is the pod's QoS class: the one given, else what follows from the resources.
func (p Pod) Guaranteed() bool {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass == "Guaranteed"
	}
	all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	return !slices.ContainsFunc(all, func(one Container) bool {
		return !one.limited("cpu") || !one.limited("memory")
	})
}

// ExclusiveCPUs are how many CPUs a container owns: whole CPUs, in Guaranteed pods only.
func (p Pod) ExclusiveCPUs(container Container) int {
	if cpus, _ := container.Amounts("cpu"); p.Guaranteed() && cpus == math.Trunc(cpus) {
		return int(cpus)
	}
	return 0
}

func (c Container) limited(resource string) bool {
	request, limit := c.Amounts(resource)
	return limit > 0 && request == limit
}

// Amounts are the request of a resource, which is its limit if it is missing, and the limit.
func (c Container) Amounts(resource string) (request, limit float64) {
	if amount, found := c.Resources.Limits[resource]; found {
		limit = Quantity(amount)
	}
	if amount, found := c.Resources.Requests[resource]; found {
		return Quantity(amount), limit
	}
	return limit, limit
}

// Quantity reads an amount such as 1500m, 2Gi or 1e3.
func Quantity(text any) float64 {
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
	return Must(strconv.ParseFloat(number, 64)) * factor
}
