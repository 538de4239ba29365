package adapter

import "encoding/json"

// Answer has exactly one field. Create it with OK, StartRefused, AdmissionRefused or NotSupported.
type Answer struct {
	OK          any          `json:"ok,omitempty"`
	Refused     any          `json:"refused,omitempty"`
	Unsupported *Unsupported `json:"unsupported,omitempty"`
	Fault       *Fault       `json:"fault,omitempty"`
}

// Unsupported names what the implementation lacks.
type Unsupported struct {
	What string `json:"what"`
}

// Fault describes an internal error.
type Fault struct {
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

// OK returns the result of an operation.
func OK(result any) Answer { return Answer{OK: result} }

// StartRefused refuses a start, a discovery (stage discovery) or options. Stages are config,
// discovery, topology, devices, cpu and memory.
func StartRefused(stage, message string) Answer {
	return Answer{Refused: map[string]string{"stage": stage, "message": message}}
}

// AdmissionRefused rejects a pod or refuses an assignment, with the documented reason.
func AdmissionRefused(reason, message string) Answer {
	return Answer{Refused: map[string]string{"reason": reason, "message": message}}
}

// UnexpectedAdmissionError is the reason if there are too few CPUs.
const UnexpectedAdmissionError = "UnexpectedAdmissionError"

// NotSupported counts neither as a failure nor as a pass.
func NotSupported(what string) Answer { return Answer{Unsupported: &Unsupported{What: what}} }

// Hello identifies an implementation and lists its claims. Features and Discovers are claims only
// if set: point to an empty list to claim none.
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

// Policies lists the claimed policies by manager.
type Policies struct {
	CPU      []string `json:"cpu,omitempty"`
	Memory   []string `json:"memory,omitempty"`
	Topology []string `json:"topology,omitempty"`
	Scope    []string `json:"scope,omitempty"`
}

// Options lists the claimed policy options.
type Options struct {
	CPU      []string `json:"cpu,omitempty"`
	Topology []string `json:"topology,omitempty"`
}

// MachineInfo is the part of cAdvisor's type that the managers read, and the answer to `discover`.
type MachineInfo struct {
	NumCores         int         `json:"num_cores"`
	NumPhysicalCores int         `json:"num_physical_cores"`
	NumSockets       int         `json:"num_sockets"`
	MemoryCapacity   uint64      `json:"memory_capacity"`
	HugePages        []HugePages `json:"hugepages"`
	Topology         []Node      `json:"topology"`
}

// HugePages describes the huge pages of one size, in KiB.
type HugePages struct {
	PageSize uint64 `json:"page_size"`
	NumPages uint64 `json:"num_pages"`
}

// Node is a NUMA node, with Memory in bytes.
type Node struct {
	ID        int         `json:"node_id"`
	Memory    uint64      `json:"memory"`
	HugePages []HugePages `json:"hugepages"`
	Distances []uint64    `json:"distances"`
	Cores     []Core      `json:"cores"`
	Caches    []Cache     `json:"caches"`
}

// Core is a physical core with its threads. Its ID is unique at most within its socket.
type Core struct {
	ID           int     `json:"core_id"`
	Threads      []int   `json:"thread_ids"`
	SocketID     int     `json:"socket_id"`
	UncoreCaches []Cache `json:"uncore_caches"`
	Caches       []Cache `json:"caches"`
}

// Cache is a cache with its size in bytes and the kernel's name for its type.
type Cache struct {
	ID    int    `json:"id"`
	Size  uint64 `json:"size"`
	Type  string `json:"type"`
	Level int    `json:"level"`
}

// CPUs returns the CPUs of all cores.
func (m *MachineInfo) CPUs() CPUSet {
	var cpus CPUSet
	for _, node := range m.Topology {
		for _, core := range node.Cores {
			cpus = append(cpus, core.Threads...)
		}
	}
	return cpus.sorted()
}

// DiscoverArgs has a directory, Root, that contains sys/ and proc/.
type DiscoverArgs struct {
	Root, Kubernetes string
}

// AssignArgs requests Count of the CPUs in Available. The answer is Assigned.
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

// Hint is a topology hint; nil NUMA nodes mean no affinity.
type Hint struct {
	NUMA      []int `json:"numa"`
	Preferred bool  `json:"preferred"`
}

// ProviderHints are hints by resource. A nil list means no preference, an empty one that no NUMA
// nodes satisfy the request.
type ProviderHints map[string][]Hint

// MergeArgs requests the merge of the providers' hints. The answer is Merged.
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

// StartArgs starts the managers. Pods and the configuration are in Kubernetes' own formats: see
// ReadPod and ReadConfig, or Convert them to Kubernetes' types.
type StartArgs struct {
	Config     json.RawMessage
	StateDir   string `json:"state_dir"`
	Machine    *MachineInfo
	Root       string
	Pods       []json.RawMessage
	Kubernetes string
}

// Started answers `start`. Create it with NewStarted.
type Started struct {
	CPUs   StartedCPUs   `json:"cpus"`
	Memory []MemoryBlock `json:"memory"`
}

// StartedCPUs has all CPUs and the allocatable ones.
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

// NewStarted returns an answer without memory.
func NewStarted(all, allocatable CPUSet) Started {
	return Started{CPUs: StartedCPUs{all, allocatable}, Memory: []MemoryBlock{}}
}

// AdmitArgs asks whether the pod can run on the node. The answer is Admitted.
type AdmitArgs struct {
	Pod json.RawMessage
}

// Admitted answers `admit` with all containers of the pod by name.
type Admitted struct {
	Containers map[string]ContainerState `json:"containers"`
}

// ContainerState has a container's resources. Create it with NewContainerState.
type ContainerState struct {
	CPUs      CPUSet              `json:"cpus"`
	Exclusive CPUSet              `json:"exclusive"`
	Memory    []MemoryBlock       `json:"memory"`
	Affinity  Hint                `json:"affinity"`
	Devices   map[string][]string `json:"devices,omitempty"`
}

// NewContainerState returns a state without memory and affinity. A container without exclusive CPUs
// runs on the shared pool.
func NewContainerState(exclusive, pool CPUSet) ContainerState {
	cpus := exclusive
	if len(cpus) == 0 {
		cpus = pool
	}
	return ContainerState{CPUs: cpus, Exclusive: exclusive, Memory: []MemoryBlock{}}
}

// RemoveArgs removes a pod, or only the named container. The answer is Done.
type RemoveArgs struct {
	UID, Container string
}

// Done answers `remove` and `devices`.
type Done struct{}

// State answers `state` with every pod on the node, by uid, and its containers.
type State struct {
	Shared CPUSet                               `json:"shared"`
	Pods   map[string]map[string]ContainerState `json:"pods"`
}

// NoArgs are the empty arguments of `state`.
type NoArgs struct{}
