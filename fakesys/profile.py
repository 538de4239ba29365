"""The machine profile: a hand-written description of a machine, as typed values.

A profile describes regular parts once (`topology`, one row for many CPUs, nodes or caches), and can
describe oddities of a single CPU, node or file. `docs/profiles.md` is the reference.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

MAX_SPEED = 2**40
"""The largest latency in nanoseconds, and the largest bandwidth in MiB per second."""

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._+-]{0,99}$")]
Text = Annotated[str, Meta(min_length=1, max_length=4000)]
Line = Annotated[str, Meta(max_length=400, pattern=r"^[^\n]*$")]
Count = Annotated[int, Meta(ge=1, le=8192)]
Speed = Annotated[int, Meta(ge=1, le=MAX_SPEED)]
Size = str | int
Pages = Annotated[Mapping[str, Annotated[int, Meta(ge=0, le=2**40)]], Meta(max_length=64)]
Sequence = str | int
List = str | int

DEFAULT_KERNEL_MAX = 8191
MAX_KERNEL_MAX = 2**20

Architecture = Literal[
    "x86_64", "i386", "arm64", "arm", "ppc64", "s390x", "ia64", "riscv64", "loongarch64", "mips64"
]
SMTControl = Literal["on", "off", "forceoff", "notsupported", "notimplemented"]
Numbering = Literal[
    "cores-first",
    "siblings-adjacent",
    "socket-by-socket",
    "sockets-interleaved",
    "nodes-interleaved",
]


class Topology(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The regular part of a machine, with equal sockets, nodes and cores.

    Cores are counted socket by socket. Nodes, dies and clusters are equal shares of consecutive
    cores.

    Attributes:
        sockets: number of physical packages.
        cores_per_socket: number of physical cores per package.
        threads_per_core: number of hardware threads per core.
        nodes: number of NUMA nodes; 0 for a kernel without NUMA.
        dies_per_socket: number of dies per package; 0 if there are no `die_id` files.
        cores_per_cluster: number of cores per cluster; 0 if there are no `cluster_id` files.
        cluster_ids: sequence of `cluster_id`s, repeated until every cluster has one (default:
            counted over the machine). Clusters with id 65535 are single CPUs.
        numbering: how hardware threads are numbered.
        core_ids: sequence of `core_id`s, repeated until every core has one.
        socket_ids: sequence of `physical_package_id`s, one per socket.
        node_ids: list of node numbers, one per node.
    """

    sockets: Count
    cores_per_socket: Count
    threads_per_core: Count = 1
    nodes: Annotated[int, Meta(ge=0, le=1024)] = 1
    dies_per_socket: Annotated[int, Meta(ge=0, le=1024)] = 0
    cores_per_cluster: Annotated[int, Meta(ge=0, le=8192)] = 0
    cluster_ids: Sequence | None = None
    numbering: Numbering = "cores-first"
    core_ids: Sequence | None = None
    socket_ids: Sequence | None = None
    node_ids: List | None = None


class CpuRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Properties of some CPUs; a sequence has one value for each, or one for all.

    Attributes:
        cpus: list of the CPUs that the row describes.
        socket: `physical_package_id`.
        die: `die_id`; `none` if there are no such files.
        cluster: `cluster_id`; `none` if there are no such files.
        core_id: `core_id`; threads of a core have the same socket, die and core id.
        book: s390x `book_id`.
        drawer: s390x `drawer_id`.
        thread_group: CPUs with the same number list each other as thread siblings (default: the
            CPUs of a core).
        package_group: the same for package siblings.
        capacity: arm64 `cpu_capacity`.
        online: false for a CPU that is present but offline.
        topology: whether `cpuN/topology` exists (default: `online`).
        cache: whether `cpuN/cache` exists (default: `online`).
    """

    cpus: List
    socket: Sequence | None = None
    die: Sequence | None = None
    cluster: Sequence | None = None
    core_id: Sequence | None = None
    book: Sequence | None = None
    drawer: Sequence | None = None
    thread_group: Sequence | None = None
    package_group: Sequence | None = None
    capacity: Sequence | None = None
    online: bool | None = None
    topology: bool | None = None
    cache: bool | None = None


class Access(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a node's memory is reached from its nearest initiators, according to the firmware.

    Attributes:
        initiators: list of the nodes with this access to the memory.
        read_latency, write_latency: in nanoseconds.
        read_bandwidth, write_bandwidth: in MiB per second.
    """

    initiators: List
    read_latency: Speed | None = None
    write_latency: Speed | None = None
    read_bandwidth: Speed | None = None
    write_bandwidth: Speed | None = None


class NodeRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Properties of some NUMA nodes.

    Attributes:
        nodes: list of the nodes that the row describes.
        cpus: one CPU list per node (a string for a single node). Nodes that get no CPUs from a row
            or from `topology` have only memory.
        memory: `MemTotal` of each node; `none` for nodes without `meminfo`.
        hugepages: number of pages per node, by page size.
        overlapping: true if the machine really reports a CPU in two nodes.
        cpulist: list of the CPUs in `cpulist` and `cpumap`, if they aren't the node's online CPUs.
        access: the contents of `access0` and `access1`.
    """

    nodes: List
    cpus: str | int | tuple[str | int, ...] | None = None
    memory: Size | None = None
    hugepages: Pages | None = None
    overlapping: bool = False
    cpulist: List | None = None
    access: Annotated[tuple[Access, ...], Meta(max_length=2)] = ()


class DerivedDistances(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A rule that derives distances from the packages.

    Attributes:
        local: the distance from a node to itself.
        near: the distance between nodes whose CPUs share a package.
        far: the distance between all other nodes.
    """

    local: Annotated[int, Meta(ge=0, le=255)] = 10
    near: Annotated[int, Meta(ge=0, le=255)] = 12
    far: Annotated[int, Meta(ge=0, le=255)] = 20


class CacheRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Caches of one kind.

    Attributes:
        level: the level, from 1.
        type: `Data`, `Instruction` or `Unified`.
        size: the size of each cache; `none` if there is no `size` file.
        shared: which CPUs share a cache: `cpu`, `core`, `cluster`, `die`, `node`, `socket`,
            `machine`, `4 cores` (consecutive cores), or the CPU lists themselves.
        cpus: list of the CPUs that have such a cache (default: all).
        ids: sequence of cache ids, one per cache in the order of `shared` (ascending first CPU),
            or one per CPU if CPUs that share a cache report different ids; `none` if there are no
            `id` files (default: counted from 0).
        line: coherency line size in bytes.
        ways: ways of associativity.
        sets: number of sets (default: derived from `size`, `line` and `ways`).
        index: the N of `indexN` (default: the position among the CPU's caches).
    """

    level: Annotated[int, Meta(ge=1, le=9)]
    type: Literal["Data", "Instruction", "Unified"]
    size: Size
    shared: str | tuple[List, ...]
    cpus: List | None = None
    ids: Sequence | None = None
    line: Annotated[int, Meta(ge=0, le=65536)] | None = None
    ways: Annotated[int, Meta(ge=0, le=65536)] | None = None
    sets: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    index: Annotated[int, Meta(ge=0, le=99)] | None = None


class CpuInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The contents of `/proc/cpuinfo`, in the architecture's format.

    Attributes:
        vendor: `vendor_id`.
        model: `model name` (x86), `cpu` (ppc64).
        mhz: clock frequency in MHz.
        fields: additional lines for every processor, by key.
        trailer: lines after the last processor, by key.
        cpus: list of the processors shown (default: the online CPUs).
        core_ids: sequence of `core id`s, one per processor shown, if they differ from
            `topology/core_id`.
        physical_ids: the same for `physical id`.
    """

    vendor: Line | None = None
    model: Line | None = None
    mhz: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    fields: Mapping[Line, Line] = {}
    trailer: Mapping[Line, Line] = {}
    cpus: List | None = None
    core_ids: Sequence | None = None
    physical_ids: Sequence | None = None


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A machine.

    Attributes:
        name: lower-case name; the file's name without its suffix.
        title: a one-line description.
        source: the machine that the profile is modelled on, and where its data is published.
        tags: words for selecting profiles.
        architecture: determines the format of `/proc/cpuinfo` and some files.
        sysfs: the kernel's set of topology files: `full` (since 5.3: `core_cpus`,
            `package_cpus`), `lists` (earlier: masks and lists) or `masks` (before 2.6.27).
        topology: the regular part of the machine.
        cpus: rows that add CPUs or change some of them.
        possible: list of the CPU numbers that could appear (default: the present CPUs).
        surplus: list of the CPUs beyond the boot option `nr_cpus`; only `offline` lists them.
        isolated: list of the CPUs that the boot option `isolcpus` isolates from the scheduler.
        nohz_full: list of the CPUs without a periodic tick, from the boot option of that name.
        smt: the text of `smt/control` (default: `on` or `notsupported` on x86, depending on
            whether cores have several online threads; `notimplemented` elsewhere).
        kernel_max: the largest CPU number that the kernel supports (default: as in x86-64
            distributions).
        nodes: rows that add NUMA nodes or change some of them.
        possible_nodes: list of the nodes that could appear (default: the nodes).
        distances: the rule for distances, or the `distance` text of every node in order.
        memory: `MemTotal` in `/proc/meminfo` (default: the sum over the nodes).
        hugepages: the machine's huge pages (default: the sums over the nodes).
        lacks: patterns for files that the machine does not have.
        trailing_nul: patterns for files whose text ends with a NUL byte.
        files: as a last resort, the literal text of files by pattern; a newline is added.
    """

    name: Name
    title: Line
    source: Text
    tags: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    architecture: Architecture
    sysfs: Literal["full", "lists", "masks"] = "full"
    topology: Topology | None = None
    cpus: Annotated[tuple[CpuRow, ...], Meta(max_length=8192)] = ()
    possible: List | None = None
    surplus: List | None = None
    isolated: List | None = None
    nohz_full: List | None = None
    smt: SMTControl | None = None
    kernel_max: Annotated[int, Meta(ge=0, le=MAX_KERNEL_MAX)] = DEFAULT_KERNEL_MAX
    nodes: Annotated[tuple[NodeRow, ...], Meta(max_length=1024)] = ()
    possible_nodes: List | None = None
    distances: DerivedDistances | tuple[Line, ...] | None = None
    caches: Annotated[tuple[CacheRow, ...], Meta(max_length=1024)] = ()
    memory: Size | None = None
    hugepages: Pages | None = None
    cpuinfo: CpuInfo | None = None
    lacks: Annotated[tuple[Line, ...], Meta(max_length=4096)] = ()
    trailing_nul: Annotated[tuple[Line, ...], Meta(max_length=4096)] = ()
    files: Annotated[
        Mapping[Line, Annotated[str, Meta(max_length=100_000)]], Meta(max_length=4096)
    ] = {}


def profile_schema() -> dict[str, Any]:
    """Returns the JSON Schema (2020-12) of a profile."""
    return msgspec.json.schema(Profile)
