"""Where real kubelets break their own documents: every known case, by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defect:
    """A behaviour of real kubelets that breaks their documents.

    Attributes:
        name: what cases and reports call it.
        releases: those that have it.
        sentence: the sentence of the documents that it breaks, in English.
        issue: where it is public; empty where no report is known.
        what: what happens, and on what.
        answers: whether it ends with an answer, which the reference then gives too. Where the
            kubelet panics or never answers, the reference keeps to the document.
    """

    name: str
    releases: tuple[str, ...]
    sentence: str
    issue: str
    what: str
    answers: bool = True


FREE_CORE_BY_AVERAGE = "free-core-by-average"
OWN_POD_REFUSED = "full-pcpus-only-refuses-own-pod"
COMBINATION_OVERWRITTEN = "distribute-combination-overwritten"
INIT_CPUS_NOT_REUSED = "init-cpus-not-reused"
AFFINITY_SHRUNK = "distribute-shrinks-affinity"
INIT_CPUS_BIND = "init-cpus-bind-later-containers"
ENDED_INIT_SERVED = "ended-init-served-again"
BROKEN_CORE_TAKEN = "full-pcpus-only-takes-broken-core"
NODES_ACROSS_SOCKETS = "distribute-across-numa-ignores-sockets"
SPREAD_BY_CPU_NUMBER = "distribute-across-cores-by-cpu-number"
STRICT_EMPTY_POOL = "strict-reservation-empty-pool-refused"
HALF_USED_CORES = "uncore-skips-half-used-cores"
CACHE_COUNTED_TWICE = "uncore-across-nodes-counted-twice"
GATES_PANIC = "bad-feature-gates-panic"
ENDLESS_LOOP = "distribute-endless-loop"
NODE_ID_PANIC = "hints-panic-on-node-id"
CLOSEST_PANIC = "closest-nodes-panic-on-node-id"
CLOSEST_BY_POSITION = "closest-nodes-by-position"
MEMORYLESS_PANIC = "hugepages-without-memory-panic"
NULL_STATE_PANIC = "null-in-machine-state-panic"
DIVISION_PANIC = "cpus-per-core-zero-panic"
SINGLE_NODE_IN_GROUP = "single-node-taken-out-of-group"
RESERVATION_WRAPS = "reservation-beyond-node-wraps"
MISSING_PAGES_PANIC = "missing-huge-pages-panic"
POD_LEVEL_TAKEN_ANEW = "pod-level-cpus-taken-anew"
INIT_ONLY_PAGES = "init-only-huge-pages-not-hinted"
VANISHED_DEVICE_PANIC = "hints-panic-on-vanished-device"
ALL_COMBINATIONS = "merge-of-all-combinations"
ALL_NODES_FOR_DEVICES = "device-hints-over-all-nodes"

_ISSUES = "https://github.com/kubernetes/kubernetes/issues/"
_PULLS = "https://github.com/kubernetes/kubernetes/pull/"
_ALL = ("1.33", "1.34", "1.35", "1.36")

_EXCLUSIVE = (
    "The amount of exclusively allocatable CPUs is equal to the total number of CPUs in the node "
    "minus any CPU reservations set by the kubelet configuration."
)
_FULL_CORES = (
    "If the full-pcpus-only policy option is specified, the static policy will always allocate "
    "full physical cores."
)
_EVENLY = (
    "If the distribute-cpus-across-numa policy option is specified, the static policy will evenly "
    "distribute CPUs across NUMA nodes in cases where more than one NUMA node is required to "
    "satisfy the allocation."
)
_CLOSEST = (
    "If the prefer-closest-numa-nodes policy option is specified, the best-effort and restricted "
    "policies favor sets of NUMA nodes with shorter distance between them."
)
_AT_ONCE = (
    "The total amount of a particular resource demanded for an entire pod is calculated by the "
    "effective requests/limits formula: the maximum of the sum of all app container requests and "
    "of the maximum of init container requests."
)

DEFECTS: tuple[Defect, ...] = (
    Defect(
        FREE_CORE_BY_AVERAGE,
        _ALL,
        _EXCLUSIVE,
        f"{_ISSUES}140495",
        "A core counts as free when as many of its CPUs are free as a core has on average, "
        "rounded down, and is then taken with all its CPUs. On machines with half-offline or "
        "hybrid cores a reserved or used CPU is handed out, and one CPU can be exclusive and in "
        "the shared pool at once.",
    ),
    Defect(
        OWN_POD_REFUSED,
        _ALL,
        "With the option enabled, the pod will be admitted by the kubelet only if the CPU request "
        "of all its containers can be fulfilled by allocating full physical cores.",
        f"{_ISSUES}129078",
        "A pod that has its CPUs already is admitted again after a restart only if as many others "
        "are free.",
    ),
    Defect(
        COMBINATION_OVERWRITTEN,
        _ALL,
        _EVENLY,
        "",
        "The chosen combination of four, or of six and more, NUMA nodes is overwritten in memory "
        "by combinations that are looked at after it: its last nodes become the last nodes of the "
        "machine, or the CPUs are not found there and the pod is refused.",
    ),
    Defect(
        INIT_CPUS_NOT_REUSED,
        _ALL,
        _AT_ONCE,
        f"{_ISSUES}112228",
        "An app container takes CPUs of ended init containers and free ones alike, so that the "
        "pod holds more CPUs than it ever needs at once.",
    ),
    Defect(
        INIT_CPUS_BIND,
        _ALL,
        "In scope container there is no notion of grouping the containers to a specific set of "
        "NUMA nodes; the Topology Manager aligns each container by itself.",
        f"{_ISSUES}94220",
        "An app container must be on the nodes of the CPUs that its pod's init containers had, "
        "and is refused where it fits on other nodes alone.",
    ),
    Defect(
        ENDED_INIT_SERVED,
        _ALL,
        _AT_ONCE,
        f"{_ISSUES}107906",
        "A pod that is admitted again after a restart is given CPUs and memory for init containers "
        "that ended long ago; where these are not free the running pod is refused.",
    ),
    Defect(
        BROKEN_CORE_TAKEN,
        _ALL,
        _FULL_CORES,
        "",
        "On hybrid machines single threads of cores are handed out; with "
        "distribute-cpus-across-numa also the sibling of a reserved CPU.",
    ),
    Defect(
        NODES_ACROSS_SOCKETS,
        _ALL,
        "If the align-by-socket policy option is specified, CPUs will be considered aligned at "
        "the socket boundary when deciding how to allocate CPUs to a container.",
        f"{_ISSUES}141237",
        "With distribute-cpus-across-numa a request that one socket can hold is spread over nodes "
        "of several sockets.",
    ),
    Defect(
        AFFINITY_SHRUNK,
        _ALL,
        "The hint is stored in the Topology Manager and used by the Hint Providers when making "
        "the resource allocation decisions.",
        f"{_ISSUES}139430",
        "With distribute-cpus-across-numa CPUs go to as few nodes as can share them, although "
        "the affinity, which the devices need, has more.",
    ),
    Defect(
        SPREAD_BY_CPU_NUMBER,
        _ALL,
        "If the distribute-cpus-across-cores policy option is specified, the static policy will "
        "attempt to allocate virtual cores (hardware threads) across different physical cores.",
        "",
        "CPUs are taken in the order of their numbers, so that on machines that number the "
        "threads of a core one after the other whole cores are filled.",
    ),
    Defect(
        STRICT_EMPTY_POOL,
        _ALL,
        "A kubelet restarts with the assignments of its checkpoint as they were.",
        f"{_ISSUES}141196",
        "With strict-cpu-reservation, once exclusive CPUs have used up the shared pool, the "
        "kubelet's next start is refused because of the empty default set.",
    ),
    Defect(
        HALF_USED_CORES,
        _ALL,
        "If the prefer-align-cpus-by-uncorecache policy option is specified, the static policy "
        "will allocate CPU resources for individual containers such that all CPUs assigned to a "
        "container share the same uncore cache block.",
        f"{_ISSUES}137315",
        "An uncore cache with a half-used core is passed over for a request that fits in it.",
    ),
    Defect(
        CACHE_COUNTED_TWICE,
        _ALL,
        "The static policy allows containers in Guaranteed pods with integer CPU requests access "
        "to exclusive CPUs on the node.",
        "",
        "An uncore cache that lies in two NUMA nodes is taken once and counted once for each: the "
        "container gets fewer CPUs than it asked for.",
    ),
    Defect(
        GATES_PANIC,
        _ALL,
        "A feature gate that the release does not know must be refused.",
        "",
        "Unknown, locked or contradictory feature gates in the configuration file end in a panic "
        "while its defaults are filled in.",
        answers=False,
    ),
    Defect(
        ENDLESS_LOOP,
        _ALL,
        _EVENLY,
        f"{_PULLS}140730",
        "With full-pcpus-only, and reserved CPUs that break cores, handing out the remainder of "
        "an uneven request never ends.",
        answers=False,
    ),
    Defect(
        NODE_ID_PANIC,
        _ALL,
        "The Topology Manager collects hints from Hint Providers.",
        "",
        "Hints on a machine with a NUMA node id below 0 or above 63 end in a panic.",
        answers=False,
    ),
    Defect(
        CLOSEST_PANIC,
        _ALL,
        _CLOSEST,
        "",
        "Comparing sets of NUMA nodes by distance ends in a panic where one has a node whose id "
        "is not below the number of nodes, on machines whose ids have gaps.",
        answers=False,
    ),
    Defect(
        CLOSEST_BY_POSITION,
        _ALL,
        _CLOSEST,
        "",
        "On machines whose node ids have gaps, distances are looked up by id where they stand in "
        "the order of the nodes, so that sets of nodes are compared by distances of others.",
    ),
    Defect(
        NULL_STATE_PANIC,
        _ALL,
        "A kubelet whose state file does not fit the machine does not start, and says so.",
        "",
        "A node or a memory type that is null in memory_manager_state, under a right checksum, "
        "ends in a panic when it is compared with the machine.",
        answers=False,
    ),
    Defect(
        DIVISION_PANIC,
        _ALL,
        _FULL_CORES,
        "",
        "A machine with fewer CPUs than cores, by its totals, ends in a division by zero.",
        answers=False,
    ),
    Defect(
        VANISHED_DEVICE_PANIC,
        ("1.34", "1.35", "1.36"),
        "The Topology Manager collects hints from Hint Providers.",
        "",
        "Hints for a container that holds a device which its plugin no longer reports, while "
        "another of the resource has NUMA nodes, end in a panic.",
        answers=False,
    ),
    Defect(
        SINGLE_NODE_IN_GROUP,
        _ALL,
        "A node is used for single-NUMA allocations or within one group of nodes, never both.",
        f"{_ISSUES}113035",
        "A hint for one node of a group that is in use is taken, so that the group's nodes no "
        "longer agree about the group.",
    ),
    Defect(
        RESERVATION_WRAPS,
        _ALL,
        "The Memory Manager guarantees memory out of what a NUMA node has beside its reservation.",
        "",
        "Where reservedMemory and huge pages exceed a node's memory, the difference wraps around: "
        "the node has almost 2**64 bytes to hand out.",
    ),
    Defect(
        POD_LEVEL_TAKEN_ANEW,
        ("1.36",),
        "A kubelet restarts with the assignments of its checkpoint as they were.",
        f"{_ISSUES}140989",
        "With the alpha gate PodLevelResourceManagers and scope pod, a pod with resources of its "
        "own that is admitted again after a restart is given other CPUs, and those that it had "
        "are lost.",
    ),
    Defect(
        INIT_ONLY_PAGES,
        _ALL,
        _AT_ONCE,
        f"{_ISSUES}140814",
        "Under scope pod the Memory Manager leaves out of its hints what only init containers ask "
        "for, such as huge pages.",
    ),
    Defect(
        MISSING_PAGES_PANIC,
        _ALL,
        "A pod that cannot have its memory is not admitted.",
        "",
        "A Guaranteed pod that asks for huge pages of a size that a node does not have ends in a "
        "panic.",
        answers=False,
    ),
    Defect(
        ALL_COMBINATIONS,
        _ALL,
        "The maximum number of NUMA nodes that the Topology Manager allows is 8; with more there "
        "is a state explosion when it enumerates the possible affinities.",
        f"{_ISSUES}131738",
        "Every combination of the providers' hints is merged: on eight nodes with four resources "
        "that are 255 to the power of 4, and an admission takes minutes.",
        answers=False,
    ),
    Defect(
        ALL_NODES_FOR_DEVICES,
        ("1.33", "1.34", "1.35"),
        "With max-allowable-numa-nodes nodes with more than 8 NUMA nodes can run with the "
        "Topology Manager enabled.",
        f"{_ISSUES}135541",
        "Hints for devices are made from all sets of the machine's nodes, so that on 34 nodes an "
        "admission with devices never ends.",
        answers=False,
    ),
    Defect(
        MEMORYLESS_PANIC,
        ("1.33",),
        "A pod that cannot have its memory is not admitted.",
        "",
        "A container that asks for huge pages and no memory, in a pod that is Guaranteed by its "
        "resources as a whole, ends in a panic on a node with the gate PodLevelResources.",
        answers=False,
    ),
)
