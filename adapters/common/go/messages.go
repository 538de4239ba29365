package adapter

import "encoding/json"

// Answer has exactly one field; make it with OK, StartRefused, AdmissionRefused and NotSupported.
type Answer struct {
	OK          any          `json:"ok,omitempty"`
	Refused     any          `json:"refused,omitempty"`
	Unsupported *Unsupported `json:"unsupported,omitempty"`
	Fault       *Fault       `json:"fault,omitempty"`
}

// Unsupported says what the implementation does not have.
type Unsupported struct {
	What string `json:"what"`
}

// Fault says what broke.
type Fault struct {
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

// OK is the result of an operation.
func OK(result any) Answer { return Answer{OK: result} }

// StartRefused refuses a start, a discovery (stage discovery) or options; stages are config,
// discovery, topology, devices, cpu and memory.
func StartRefused(stage, message string) Answer {
	return Answer{Refused: map[string]string{"stage": stage, "message": message}}
}

// AdmissionRefused refuses a pod or an assignment, with the documented reason.
func AdmissionRefused(reason, message string) Answer {
	return Answer{Refused: map[string]string{"reason": reason, "message": message}}
}

// UnexpectedAdmissionError is the reason when there are not enough CPUs.
const UnexpectedAdmissionError = "UnexpectedAdmissionError"

// NotSupported is never a failure and never a pass.
func NotSupported(what string) Answer { return Answer{Unsupported: &Unsupported{What: what}} }

// Hello is who an implementation is and what it claims. Features and Discovers are claims only
// where they are set: point to an empty list to claim none.
type Hello struct {
	Protocol   int       `json:"protocol"`
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Language   string    `json:"language"`
	Kubernetes []string  `json:"kubernetes"`
	Level      string    `json:"level"`
	Operations []string  `json:"operations"`
	Policies   Policies  `json:"policies"`
	Options    Options   `json:"options"`
	Features   *[]string `json:"features,omitempty"`
	Discovers  *[]string `json:"discovers,omitempty"`
	Homepage   string    `json:"homepage,omitempty"`
	Issues     string    `json:"issues,omitempty"`
}

// Policies are those that an implementation has, by manager.
type Policies struct {
	CPU      []string `json:"cpu,omitempty"`
	Memory   []string `json:"memory,omitempty"`
	Topology []string `json:"topology,omitempty"`
	Scope    []string `json:"scope,omitempty"`
}

// Options are the names of policy options that an implementation has.
type Options struct {
	CPU      []string `json:"cpu,omitempty"`
	Topology []string `json:"topology,omitempty"`
}

// MachineInfo is cAdvisor's, as far as the managers read it, and the answer to `discover`.
type MachineInfo struct {
	NumCores         int         `json:"num_cores"`
	NumPhysicalCores int         `json:"num_physical_cores"`
	NumSockets       int         `json:"num_sockets"`
	MemoryCapacity   uint64      `json:"memory_capacity"`
	HugePages        []HugePages `json:"hugepages"`
	Topology         []Node      `json:"topology"`
}

// HugePages are the pages of one size, in KiB.
type HugePages struct {
	PageSize uint64 `json:"page_size"`
	NumPages uint64 `json:"num_pages"`
}

// Node is a NUMA node; Memory is in bytes.
type Node struct {
	ID        int         `json:"node_id"`
	Memory    uint64      `json:"memory"`
	HugePages []HugePages `json:"hugepages"`
	Distances []uint64    `json:"distances"`
	Cores     []Core      `json:"cores"`
	Caches    []Cache     `json:"caches"`
}

// Core is a physical core with its threads. ID is at best unique within its socket.
type Core struct {
	ID           int     `json:"core_id"`
	Threads      []int   `json:"thread_ids"`
	SocketID     int     `json:"socket_id"`
	UncoreCaches []Cache `json:"uncore_caches"`
	Caches       []Cache `json:"caches"`
}

// Cache has its size in bytes; Type is the kernel's word.
type Cache struct {
	ID    int    `json:"id"`
	Size  uint64 `json:"size"`
	Type  string `json:"type"`
	Level int    `json:"level"`
}

// CPUs are those of all cores.
func (m *MachineInfo) CPUs() CPUSet {
	var cpus CPUSet
	for _, node := range m.Topology {
		for _, core := range node.Cores {
			cpus = append(cpus, core.Threads...)
		}
	}
	return cpus.sorted()
}

// DiscoverArgs: Root is a directory with sys/ and proc/.
type DiscoverArgs struct {
	Root, Kubernetes string
}

// AssignArgs asks for Count of the CPUs in Available; the answer is Assigned.
type AssignArgs struct {
	Machine    MachineInfo
	Available  CPUSet
	Count      int
	Options    map[string]string
	Kubernetes string
}

// Assigned answers `assign`.
type Assigned struct {
	CPUs CPUSet `json:"cpus"`
}

// Hint has nil for "no affinity".
type Hint struct {
	NUMA      []int `json:"numa"`
	Preferred bool  `json:"preferred"`
}

// ProviderHints are by resource: a nil list is "no preference", an empty one "nowhere".
type ProviderHints map[string][]Hint

// MergeArgs asks for the merge of what the providers give; the answer is Merged.
type MergeArgs struct {
	Nodes      []int
	Policy     string
	Providers  []ProviderHints
	Options    map[string]string
	Distances  map[string][]uint64
	Kubernetes string
}

// Merged answers `merge`.
type Merged struct {
	Hint  Hint `json:"hint"`
	Admit bool `json:"admit"`
}

// StartArgs starts the managers. Pods and the configuration are Kubernetes' own: see ReadPod and
// ReadConfig, or Convert them into Kubernetes' types.
type StartArgs struct {
	Config     json.RawMessage
	StateDir   string `json:"state_dir"`
	Machine    *MachineInfo
	Root       string
	Pods       []json.RawMessage
	Kubernetes string
}

// Started answers `start`; make it with NewStarted.
type Started struct {
	CPUs   StartedCPUs   `json:"cpus"`
	Memory []MemoryBlock `json:"memory"`
}

// StartedCPUs are all CPUs and those that containers may own.
type StartedCPUs struct {
	All         CPUSet `json:"all"`
	Allocatable CPUSet `json:"allocatable"`
}

// MemoryBlock is memory of one type on a group of nodes, in bytes.
type MemoryBlock struct {
	NUMA []int  `json:"numa"`
	Type string `json:"type"`
	Size uint64 `json:"size"`
}

// NewStarted has no memory.
func NewStarted(all, allocatable CPUSet) Started {
	return Started{CPUs: StartedCPUs{all, allocatable}, Memory: []MemoryBlock{}}
}

// AdmitArgs asks whether the pod may run on the node; the answer is Admitted.
type AdmitArgs struct {
	Pod json.RawMessage
}

// Admitted answers `admit`: every container of the pod by name.
type Admitted struct {
	Containers map[string]ContainerState `json:"containers"`
}

// ContainerState is what a container has; make it with NewContainerState.
type ContainerState struct {
	CPUs      CPUSet              `json:"cpus"`
	Exclusive CPUSet              `json:"exclusive"`
	Memory    []MemoryBlock       `json:"memory"`
	Affinity  Hint                `json:"affinity"`
	Devices   map[string][]string `json:"devices,omitempty"`
}

// NewContainerState has no memory and no affinity; without exclusive CPUs it runs in the pool.
func NewContainerState(exclusive, pool CPUSet) ContainerState {
	cpus := exclusive
	if len(cpus) == 0 {
		cpus = pool
	}
	return ContainerState{CPUs: cpus, Exclusive: exclusive, Memory: []MemoryBlock{}}
}

// RemoveArgs: the pod has ended, or only the container that is named. The answer is Done.
type RemoveArgs struct {
	UID, Container string
}

// Done answers `remove` and `devices`.
type Done struct{}

// State answers `state`: every pod on the node by its uid, and of each every container.
type State struct {
	Shared CPUSet                               `json:"shared"`
	Pods   map[string]map[string]ContainerState `json:"pods"`
}

// NoArgs are the arguments of `state`.
type NoArgs struct{}
