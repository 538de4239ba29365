package adapter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config is the part of a KubeletConfiguration that reserves CPUs.
type Config struct {
	CPUManagerPolicy, ReservedSystemCPUs string
	KubeReserved, SystemReserved         map[string]any
}

// ReadConfig decodes the known part of a KubeletConfiguration.
func ReadConfig(raw json.RawMessage) (config Config) {
	Check(json.Unmarshal(raw, &config))
	return config
}

// Reserved returns the CPUs kept for the system: those named, or else the lowest ones of the
// reserved number. It returns none if more CPUs are reserved than exist.
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

// Pod is the part of a v1.Pod that determines exclusive CPUs.
type Pod struct {
	Metadata struct{ UID, Name, Namespace string }
	Spec     struct {
		Containers, InitContainers []Container
		Resources                  map[string]any
	}
	Status struct{ QOSClass string }
}

// Container is a container of a pod.
type Container struct {
	Name          string
	RestartPolicy string
	Resources     struct{ Limits, Requests map[string]any }
}

// ReadPod decodes the known part of a manifest.
func ReadPod(raw json.RawMessage) (pod Pod) {
	Check(json.Unmarshal(raw, &pod))
	return pod
}

// Guaranteed reports whether the pod's QoS class is Guaranteed, according to its status or else its
// resources.
func (p Pod) Guaranteed() bool {
	if p.Status.QOSClass != "" {
		return p.Status.QOSClass == "Guaranteed"
	}
	all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	return !slices.ContainsFunc(all, func(one Container) bool {
		return !one.limited("cpu") || !one.limited("memory")
	})
}

// ExclusiveCPUs returns how many exclusive CPUs a container gets: whole CPUs, in Guaranteed pods
// only.
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

// Amounts returns the request and the limit of a resource. A missing request defaults to the limit.
func (c Container) Amounts(resource string) (request, limit float64) {
	if amount, found := c.Resources.Limits[resource]; found {
		limit = Quantity(amount)
	}
	if amount, found := c.Resources.Requests[resource]; found {
		return Quantity(amount), limit
	}
	return limit, limit
}

// Quantity parses an amount such as 1500m, 2Gi or 1e3.
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
