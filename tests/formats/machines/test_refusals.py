"""Texts that can't be used are refused by their right name, with the way to get a usable one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from numaproof.formats.machines import assumptions
from numaproof.formats.machines.needs import differing_settings, require_enough
from numaproof.formats.machines.reading import read
from numaproof.inputs.errors import DocumentError

HERE = Path(__file__).parent

LSCPU = """\
Architecture: x86_64
CPU(s): 8
On-line CPU(s) list: 0-7
Thread(s) per core: 2
Core(s) per socket: 4
Socket(s): 1
NUMA node(s): 1
NUMA node0 CPU(s): 0-7
"""
NUMACTL = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1
node 0 size: 100 MB
node 1 cpus: 2 3
node 1 size: 100 MB
node distances:
node   0   1
  0:  10  20
  1:  20  10
"""
XML = """\
<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd" [<!ENTITY a "b">]>
<topology><object type="Machine" cpuset="0x1"><object type="PU" os_index="0" cpuset="0x1"/></object>
</topology>
"""

XML_OF_LOST = """\
<topology><object type="Machine" cpuset="0x3"><object type="PU" os_index="0" cpuset="0x1"/></object>
</topology>
"""

GERMAN = """\
Architektur:                     x86_64
CPU Operationsmodus:             32-bit, 64-bit
Byte-Reihenfolge:                Little Endian
CPU(s):                          8
Liste der Online-CPU(s):         0-7
"""

LOG = "Machine: {NumCores:1 MemoryCapacity:1 HugePages:[] MachineID:%s Topology:[%s]}\n"

INFO = """\
{"num_cores": 2, "memory_capacity": 9, "topology": [
  {"node_id": 0, "memory": 4, "distances": [10, 20], "cores": [{"core_id": 0, "thread_ids": [0]}]},
  {"node_id": 1, "memory": 5, "distances": [20, 10], "cores": [{"core_id": 0, "thread_ids": [1]}]}
]}
"""

SIZED = """\
<topology><object type="Machine" cpuset="0x1"><object type="NUMANode" os_index="0" cpuset="0x1"
local_memory="4096"><page_type size="4096" count="1"/></object>
<object type="PU" os_index="0" cpuset="0x1"/></object></topology>
"""

REFUSED = {
    "processor\t: 0\nvendor_id\t: GenuineIntel\n": "/proc/cpuinfo",
    "MemTotal:       16314564 kB\n": "/proc/meminfo",
    "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\n": "dmidecode",
    'CPU 0:\n   vendor_id = "GenuineIntel"\n': "the output of cpuid",
    "policy: default\npreferred node: current\nphyscpubind: 0 1\ncpubind: 0\n": "numactl --show",
    "No NUMA support available on this system.\n": "kernel without NUMA",
    "                           node0           node1\nnuma_hit     1 2\n": "numastat",
    "Machine (24GB total)\n  Package L#0\n": "lstopo's drawing as text",
    '<?xml version="1.0"?>\n<svg width="1">\n': "a drawing (SVG)",
    "<capabilities>\n  <host>\n": "libvirt",
    "node7\n    description: Computer\n  *-core\n": "lshw",
    "Name:               node7\nRoles:              worker\n": "kubectl describe",
    "NAME   STATUS   ROLES    AGE   VERSION\n": "kubectl get nodes",
    "%PDF-1.7\n": "a PDF",
    "\x7fELF": "a program",
    "two sockets with\n16 cores each\n": "in none of the formats that describe a machine",
    "": "is empty",
    "\n \n": "is empty",
    "kind: Pod\n": "an object of kind Pod (name it as a file of pods)",
    "kind: Pod\n---\nkind: Service\n": "an object of kind Pod",
    '{"items": [{"kind": "Pod"}], "kind": "PodList"}': "an object of kind PodList",
    "kind: List\nitems: [{kind: Pod}]\n": "a list of objects of kind Pod (name it as a file of",
    "kind: KubeletConfiguration\n": "kind KubeletConfiguration (name it with --config)",
    "cpuManagerPolicy: static\n": "a kubelet's configuration",
    '{"num_cores": 4, "machine_id": "x"}': "a MachineInfo without topology",
    '{"policyName": "static", "defaultCpuSet": "0-3"}': "a kubelet's state file",
    # lost lines and contradictions
    LSCPU.replace("node(s): 1", "node(s): 2"): "counts 2 NUMA nodes but has 1 line",
    LSCPU.replace("CPU(s): 8", "CPU(s): 9"): "counts 9 CPUs but lists 8",
    LSCPU.replace("node0 CPU(s): 0-7", "node0 CPU(s): 0-6"): "CPU 7 in no NUMA node",
    LSCPU.replace("node0 CPU(s): 0-7", "node0 CPU(s): 0-8"): "CPU 8 only in NUMA node 0",
    re.sub(r"Thread.*\n", "", LSCPU).replace("socket: 4", "socket: 3"): "3 cores are not 8 CPUs",
    "# CPU,Core,Socket,Node\n0,0,0,0\n0,1,0,0\n": "file:3: lscpu --parse lists CPU 0 again",
    NUMACTL.replace("size: 100", "size: -5"): "node 0 size: expected MB, got '-5 MB'",
    XML_OF_LOST: "CPU 1 in a Machine, but no PU for it",
    NUMACTL.replace("2 3", "21 22 2\n3 24"): "node 1 cpus: not in order, as if a number were cut",
    SIZED.replace('memory="4096"', 'memory="-1"'): "the number '-1' is invalid",
    SIZED.replace('count="1"', 'count="-1"'): "the number '-1' is invalid",
    INFO.replace('"num_cores": 2', '"num_cores": 3'): "that counts 3 CPUs but lists 2",
    INFO.replace("5,", "-5,"): "a MachineInfo with the negative size -5",
    re.sub(r",\n.*node_id.: 1.*\n", "\n", INFO): "with 1 NUMA node but distances to 2",
    # several machines
    LSCPU + LSCPU: "file:9: lscpu again, first in line 1",
    LSCPU + NUMACTL: "lscpu and numactl --hardware show different CPUs: 0-7 and 0-3",
    NUMACTL + LSCPU.replace("8", "4").replace("0-7", "0-3").replace("socket: 4", "socket: 2"): (
        "numactl --hardware and lscpu show CPU 2 on the NUMA nodes 1 and 0"
    ),
    LOG % ("a", "") + NUMACTL: "file:2: numactl --hardware next to a kubelet's log",
    LOG % ("a", "") + LOG % ("b", ""): "file:2: a kubelet's log of another machine",
    # lscpu in other languages
    GERMAN: "English",
    "Architektur:         x86_64\nCPU(s):              8\nOnline-CPU(s): 0-7\n": "English",
    "Architecture :         x86_64\nProcesseur(s) (CPU) : 8\n": "English",
    "架构\uff1a           x86_64\nCPU 运行模式\uff1a   32-bit\nCPU:             8\n": "English",
    "CPU NODE SOCKET CORE ONLINE\n0 0 0 0 ja\n1 0 0 1 nein\n": "English",
    # incomplete or contradictory
    '{"caches": [{"name": "L1d"}]}': "lscpu --caches",
    NUMACTL.replace("node 1 cpus: 2 3\n", ""): "2 nodes but has 1 line `node N cpus`",
    NUMACTL.replace("2 3", "2 ... 7"): "expected numbers, got '2 ... 7'",
    NUMACTL.replace("2 3", "1 2"): "in several NUMA nodes",
    NUMACTL.replace("  1:  20  10\n", ""): "the distances are not those of 2 nodes",
    LSCPU.replace("Socket(s): 1", "Socket(s): 2"): "the cores differ",
    LSCPU.replace("node0 CPU(s): 0-7", "node CPU(s)"): "counts 1 NUMA node but has 0 lines",
    LSCPU.replace("list: 0-7", "list: 7-0"): "reversed",
    "CPU NODE SOCKET CORE\nx 0 0 0\n0 0 0 0\n": "with the CPU 'x'",
    "CPU NODE SOCKET CORE\n0 0 0 0\n1 0 0 -\n": "without the CORE of some CPUs",
    "CPU NODE SOCKET CORE ONLINE\n0 - - - no\n": "no CPU is online",
    XML: "defines entities",
    XML.replace(' [<!ENTITY a "b">]', "").replace("</object>", ""): "not XML: mismatched tag",
    XML.replace(' [<!ENTITY a "b">]', "").replace('"PU"', '"Core"'): "lstopo without CPUs",
    XML.replace(' [<!ENTITY a "b">]', "").replace('"0x1"', '"0xz"'): "not hexadecimal",
    "kind: Node\nstatus: {}\n": "without status.capacity.cpu",
    "kind: Node\nstatus: {capacity: {cpu: many}}\n": "status.capacity.cpu: quantities must match",
    "kind: NodeList\nitems: []\n": "0 objects in a list",
    "kind: List\nitems: [{kind: Node}, {kind: Node}]\n": "2 objects in a list",
    "kind: NodeResourceTopology\nzones: []\n": "without zones of type Node",
    "kind: NodeResourceTopology\nzones: [{name: node-0}]\n": "whose zones have no cpu",
    "kind: NodeResourceTopology\nzones: [\n": "not YAML",
    "kind: NodeResourceTopology\n"
    "metadata: {annotations: {node.koordinator.sh/cpu-topology: '{'}}\n": "is not Koordinator's",
    "kind: Numatopology\nspec: {cpuDetail: {}}\n": "without spec.cpuDetail",
    "kind: NodeList\nitems: [{kind: Pod}]\n": "an object of kind Pod",
    "kind: Node\nstatus: {capacity: {cpu: 1G}}\n": "1,000,000,000 CPUs; expected 1 to 8192",
    "kind: Node\nstatus: {capacity: {cpu: -1}}\n": "cpu: must not be negative, got -1",
    "kind: Node\nstatus: {capacity: {cpu: 1500m}}\n": "cpu: 1500m is not a whole number of CPUs",
    "kind: NodeResourceTopology\nzones: [{name: n0, resources: [{name: cpu, capacity: 8.5}]}]\n": (
        "zone 0: cpu: 8.5 is not a whole number of CPUs"
    ),
    "kind: Node\nstatus: {capacity: {cpu: 1, memory: -1Gi}}\n": "memory: must not be negative",
    "kind: Numatopology\nspec: {cpuDetail: {x: {}}}\n": "spec.cpuDetail: ",
    NUMACTL.replace("2 3", "9999"): "describes no machine: cpus[0].cpus: 9999 is too large",
    '{"cpus": [], "lscpu": ' + "[" * 500 + "]" * 500 + "}": "without CPUs",
    '{"lscpu": ' + '[{"children": ' * 400 + "[]" + "}]" * 400 + "}": "",
    '{"num_cores": 1, "topology": []}': "a MachineInfo without CPUs",
    '{"num_cores": "x", "topology": []}': "a MachineInfo: Expected `int`",
    '{"num_cores": 2, "topology": [{"node_id": 0, "cores": [{"core_id": 0, "thread_ids": [1, 1]}]}]'
    "}": "a CPU that occurs twice",
    "Machine: {NumCores:4 MachineID:x Topology:[{Id:0 Memory:1 Cores:[{Id": "cut off",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: REFUSED[text])
def test_a_text_is_refused_by_its_right_name(text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text.encode("utf-8", "surrogateescape"), "file")
    assert REFUSED[text] in str(caught.value)
    assert str(caught.value).startswith("file")


@pytest.mark.parametrize(
    "magic", [b"\x89PNG\r\n", b"\xff\xd8\xff\xe0", b"\x1f\x8b\x08", b"PK\x03\x04"]
)
def test_binary_files_are_refused(magic: bytes) -> None:
    with pytest.raises(DocumentError):
        read(magic + bytes(20), "file")


@pytest.mark.parametrize("text", ["name: mine\ntopology: {}\n", "{", "[1]"])
def test_other_texts_are_left_to_other_readers(text: str) -> None:
    assert read(text.encode(), "file") is None


@pytest.mark.parametrize("text", [INFO, SIZED])
def test_the_whole_texts_are_read(text: str) -> None:
    assert read(text.encode(), "file") is not None


def test_assumptions_fill_gaps() -> None:
    node = b"kind: Node\nstatus: {capacity: {cpu: 8}}\n"
    pairs = ["memory=8Gi", "nodes=2", "sockets=1", "threads-per-core=2", "siblings=adjacent"]
    pairs += ["cores-per-l3=1", "hugepages-2Mi=4"]
    text = read(node, "file", map(assumptions.parse, pairs))
    assert text is not None
    assert {gap.subject for gap in text.missing} == {"numbers", "distances"}
    nodes = text.machine.topology or ()
    assert [[core.thread_ids for core in one.cores or ()] for one in nodes] == [
        [(0, 1), (2, 3)],
        [(4, 5), (6, 7)],
    ]
    assert [one.memory for one in nodes] == [4 << 30, 4 << 30]
    assert all(one.hugepages and one.hugepages[0].num_pages == 2 for one in nodes)
    assert all(core.uncore_caches for one in nodes for core in one.cores or ())
    assert text.machine.num_sockets == 1


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["nodes=2"], "--assume nodes has no effect: lscpu doesn't need it"),
        (["memory=1Gi", "memory=2Gi"], "--assume memory is given twice"),
        (["siblings=adjacent", "hugepages-1Gi=1"], ""),
    ],
)
def test_assumptions_that_have_no_effect_are_refused(pairs: list[str], message: str) -> None:
    pairs_read = [assumptions.parse(one) for one in pairs]
    if not message:
        assert read(LSCPU.encode(), "file", pairs_read) is not None
        return
    with pytest.raises(DocumentError, match="--assume") as caught:
        read(LSCPU.encode(), "file", pairs_read)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("color=red", "unknown key 'color'; use one of memory, nodes"),
        ("nodes=0", "nodes: expected a number from 1"),
        ("memory=big", "memory: expected a size"),
        ("siblings=far", "siblings: expected apart or adjacent"),
        ("numbering=odd", "numbering: expected by-node or alternating"),
        ("hugepages-2Mi=x", "hugepages-2Mi: expected a number of pages"),
    ],
)
def test_wrong_assumptions_name_the_key(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        assumptions.parse(text)
    assert message in str(caught.value)


NRT = """\
kind: NodeResourceTopology
zones:
- {name: node-0, type: Node, resources: [{name: cpu, capacity: "4"}]}
- {name: node-1, type: Node, resources: [{name: cpu, capacity: "4"}]}
"""


@pytest.mark.parametrize(
    ("content", "config", "message"),
    [
        (
            LSCPU,
            {"memoryManagerPolicy": "Static"},
            "the memory, which lscpu doesn't show (add --assume",
        ),
        (
            "kind: Node\nstatus: {capacity: {cpu: 8}}",
            {"topologyManagerPolicy": "restricted"},
            "nodes=N",
        ),
        (
            NUMACTL,
            {"cpuManagerPolicyOptions": {"prefer-align-cpus-by-uncorecache": "true"}},
            "cores-per-l3",
        ),
        (NUMACTL, {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}, "threads-per-core"),
        (
            NUMACTL.partition("node distances")[0],
            {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}},
            "use a tree",
        ),
        (
            NRT,
            {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"},
            "the CPUs' numbers, which a NodeResourceTopology doesn't show (add --assume numbering=",
        ),
    ],
)
def test_a_configuration_that_depends_on_a_gap_is_refused(
    content: str, config: dict[str, object], message: str
) -> None:
    text = read(content.encode(), "file")
    assert text is not None
    require_enough(text, {})
    with pytest.raises(DocumentError) as caught:
        require_enough(text, config)
    assert message in str(caught.value)


def test_cpus_in_a_state_depend_on_their_numbers() -> None:
    text = read(NRT.encode(), "file")
    assert text is not None
    require_enough(text, {"cpuManagerPolicy": "static"})
    require_enough(text, {}, state=True)
    with pytest.raises(DocumentError, match="cpu_manager_state depends on the CPUs' numbers"):
        require_enough(text, {"cpuManagerPolicy": "static"}, state=True)


@pytest.mark.parametrize(
    ("numbering", "first"),
    [("by-node", [(0, 4), (1, 5)]), ("alternating", [(0, 4), (2, 6)])],
)
def test_cpus_can_be_numbered_in_two_ways(numbering: str, first: list[tuple[int, ...]]) -> None:
    assume = [assumptions.parse(f"numbering={numbering}"), ("threads-per-core", 2)]
    text = read(NRT.encode(), "file", assume)
    assert text is not None
    assert not [gap for gap in text.missing if gap.subject == "numbers"]
    node, _ = text.machine.topology or ()
    assert [core.thread_ids for core in node.cores or ()] == first
    require_enough(text, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["threads-per-core=3"], "8 CPUs can't form cores of 3 threads"),
        (["nodes=3"], "can't be divided into 3 NUMA nodes"),
        (["nodes=2", "sockets=3"], "3 sockets don't fit 2 NUMA nodes"),
        (["sockets=3"], "can't be divided into 3 sockets"),
    ],
)
def test_assumptions_that_do_not_fit_are_refused(pairs: list[str], message: str) -> None:
    node = b"kind: Node\nstatus: {capacity: {cpu: 8}}\n"
    with pytest.raises(DocumentError) as caught:
        read(node, "file", [assumptions.parse(one) for one in pairs])
    assert message in str(caught.value)


def test_settings_that_a_configuration_has_otherwise_are_noted() -> None:
    text = read((HERE / "texts" / "nrt-busy.yaml").read_bytes(), "file")
    assert text is not None
    agreeing = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0-1",
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
    }
    assert [*differing_settings(text, agreeing)] == []
    (note,) = differing_settings(text, agreeing | {"topologyManagerPolicy": "restricted"})
    assert note.endswith("single-numa-node, but the configuration has restricted")
    assert [note.split()[3] for note in differing_settings(text, {})] == [
        "topologyManagerPolicy",
        "topologyManagerScope",
        "cpuManagerPolicy",
        "2",
    ]


VOLCANO = {"cpuManagerPolicy": "static", "topologyManagerPolicy": "best-effort"}
NODE_16 = "kind: Node\nstatus: {capacity: {cpu: 16}, allocatable: {cpu: 15890m}}\n"
NRT_16 = """\
kind: NodeResourceTopology
zones:
- {name: node-0, resources: [{name: cpu, capacity: 8, allocatable: ALLOCATABLE}]}
- {name: node-1, resources: [{name: cpu, capacity: 8, allocatable: 8}]}
"""


@pytest.mark.parametrize(
    ("text", "agreeing", "configuration", "differing"),
    [
        ("numatopology.yaml", VOLCANO | {"reservedSystemCPUs": "3"}, VOLCANO, "1 CPU, 0"),
        (NODE_16, {"kubeReserved": {"cpu": "110m"}}, {"reservedSystemCPUs": "0-1"}, "0.11 CPU, 2"),
        (
            NRT_16.replace("ALLOCATABLE", "6"),
            {"kubeReserved": {"cpu": "1"}, "systemReserved": {"cpu": "500m"}},
            {"kubeReserved": {"cpu": "1"}},
            "2 CPU, 1",
        ),
    ],
)
def test_reservations_that_a_configuration_has_otherwise_are_noted(
    text: str, agreeing: dict[str, Any], configuration: dict[str, Any], differing: str
) -> None:
    is_file = text.endswith(".yaml")
    found = read((HERE / "texts" / text).read_bytes() if is_file else text.encode(), "file")
    assert found is not None
    assert [*differing_settings(found, agreeing)] == []
    (note,) = differing_settings(found, configuration)
    own, _, other = differing.partition(", ")
    assert note == f"its kubelet reserves {own}, but the configuration reserves {other}"


def test_policies_that_a_configuration_has_otherwise_are_noted() -> None:
    text = read((HERE / "texts" / "numatopology.yaml").read_bytes(), "file")
    assert text is not None
    notes = [*differing_settings(text, {"reservedSystemCPUs": "0"})]
    assert notes == [
        "its kubelet has cpuManagerPolicy static, but the configuration has none",
        "its kubelet has topologyManagerPolicy best-effort, but the configuration has none",
    ]


def test_without_exclusive_cpus_a_reservation_is_unknown() -> None:
    text = read(NRT_16.replace("ALLOCATABLE", "0").replace(": 8}]}\n", ": 0}]}\n").encode(), "file")
    assert text is not None
    assert [*differing_settings(text, {})] == []
