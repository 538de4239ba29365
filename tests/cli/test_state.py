"""`numaproof state check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.protocol.sets import CPUSet
from numaproof.reference.checkpoints import cpu
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import release
from numaproof.reference.memory.state import Block, MemoryState, MemoryTable, NodeMemory

Command = Callable[..., Any]

CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""


def written(shared: str, exclusive: dict[str, dict[str, str]]) -> bytes:
    masks = {
        uid: {name: CPUSet.parse(cpus).mask for name, cpus in containers.items()}
        for uid, containers in exclusive.items()
    }
    return cpu.dump(CPUState(CPUSet.parse(shared).mask, masks), "static", release("1.36").cpu_files)


@pytest.fixture
def judge(command: Command) -> Command:
    def run(content: bytes, *more: str) -> Any:
        Path("state").write_bytes(content)
        Path("kubelet.yaml").write_text(CONFIG)
        return command("state", "check", "state", "--machine", "laptop-4c8t", *more)

    return run


def test_a_file_that_fits_the_machine_is_0(judge: Command) -> None:
    ended = judge(written("0-1,4-7", {"a": {"c": "2-3"}}), "--config", "kubelet.yaml")
    assert (ended.code, ended.out) == (0, "The kubelet starts with this file.\n")


def test_a_configuration_is_assumed_from_the_file(judge: Command) -> None:
    assert judge(written("0-7", {})).code == 0


def test_a_damaged_file_is_1_with_the_kubelets_words_and_its_own_path(judge: Command) -> None:
    ended = judge(written("0-7", {}).replace(b"0-7", b"0-6"), "--config", "kubelet.yaml")
    assert ended.code == 1
    assert "checkpoint is corrupted" in ended.out
    assert '"/var/lib/kubelet/cpu_manager_state"' in ended.out
    assert "drain the node" in ended.out


def test_cpus_that_the_machine_does_not_have_are_1(judge: Command) -> None:
    ended = judge(written("0-9", {}), "--json")
    assert ended.code == 1
    assert ended.json()["refusal"]["stage"] == "cpu"


def test_two_pods_on_the_same_cpus_are_found(judge: Command) -> None:
    ended = judge(written("0-1,4-7", {"a": {"c": "2-3"}, "b": {"c": "3"}}))
    assert ended.code == 1
    assert "pods a and b both hold CPU 3" in ended.out


def test_of_a_file_of_two_parts_data_is_judged(judge: Command) -> None:
    held = {uid: {"c": CPUSet.parse(cpus).mask} for uid, cpus in (("a", "2-3"), ("b", "3"))}
    state = CPUState(CPUSet.parse("0-1,4-7").mask, held)
    content = cpu.dump(state, "static", release("1.37").cpu_files)
    older = content.replace(b'"policyName":"static"', b'"policyName":"none"', 1)
    ended = judge(older.replace(b'"entries":{"a"', b'"entries":{"c"', 1), "--kubernetes", "1.37")
    assert ended.code == 1
    assert "pods a and b both hold CPU 3" in ended.out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no json", "pass --config"),
        (b'{"policyName":"static","defaultCpuSet":""}', "pass --config"),
        (b'{"policyName":"Static","machineState":{}}', "pass --config"),
        (b'{"PodDeviceEntries":[]}', "expected a cpu_manager_state or a memory_manager_state"),
    ],
)
def test_what_cannot_be_judged_is_2(judge: Command, content: bytes, told: str) -> None:
    ended = judge(content)
    assert ended.code == 2
    assert told in ended.err


TOTAL = 13864 << 20
GI = 1 << 30
MEMORY_CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
memoryManagerPolicy: Static
systemReserved: {memory: 924Mi}
reservedMemory:
- numaNode: 0
  limits: {memory: 1Gi}
"""
DIFFERENT = "the expected machine state is different from the real one"


def one_node(
    total: int = TOTAL, system: int = GI, held: int = 0, blocks: int = 0, cells: int = 1
) -> NodeMemory:
    left = total - system
    tables = {kind: MemoryTable(0, 0, 0, 0, 0) for kind in ("hugepages-1Gi", "hugepages-2Mi")}
    return NodeMemory(
        blocks, {**tables, "memory": MemoryTable(total, system, left, held, left - held)}, cells
    )


def memory_written(*nodes: NodeMemory, held: dict[str, Block] | None = None) -> bytes:
    entries = {uid: {"c": (block,)} for uid, block in (held or {}).items()}
    return memory_checkpoint.dump(
        MemoryState(dict(enumerate(nodes)), entries), "Static", release("1.36").memory_files
    )


@pytest.fixture
def judge_memory(command: Command) -> Command:
    def run(content: bytes, *more: str, config: str = MEMORY_CONFIG) -> Any:
        Path("memory_manager_state").write_bytes(content)
        Path("kubelet.yaml").write_text(config)
        given = ("--config", "kubelet.yaml", *more) if config else more
        return command("state", "check", "memory_manager_state", "--machine", "laptop-4c8t", *given)

    return run


def test_a_memory_file_that_fits_the_machine_is_0(judge_memory: Command) -> None:
    held = memory_written(one_node(held=GI, blocks=1), held={"a": Block(1, "memory", GI)})
    for content in (memory_written(one_node()), held):
        ended = judge_memory(content)
        assert (ended.code, ended.out) == (0, "The kubelet starts with this file.\n")


def test_a_configuration_with_the_files_reservation_is_assumed(judge_memory: Command) -> None:
    assert judge_memory(memory_written(one_node(system=3 * GI)), config="").code == 0
    ended = judge_memory(memory_written(one_node(system=0)), config="")
    assert ended.code == 2
    assert "pass --config" in ended.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            memory_written(one_node(total=TOTAL + 4096)),
            f"NUMA node 0: memory: total is {TOTAL + 4096} in the file but {TOTAL} on the machine",
        ),
        (
            memory_written(one_node(system=2 * GI)),
            "systemReserved is 2147483648 in the file but 1073741824 on the machine (the conf",
        ),
        (
            memory_written(one_node(), one_node()),
            "the file has NUMA node 1, which the machine does not have",
        ),
        (
            memory_written(one_node(blocks=1)),
            "NUMA node 0: numberOfAssignments is 1, expected 0",
        ),
        (
            memory_written(one_node(held=GI, blocks=1), held={"a": Block(1, "memory", GI // 2)}),
            "NUMA node 0: memory: containers hold 536870912, but 1073741824 is reserved",
        ),
        (
            memory_written(
                one_node(blocks=1, cells=3),
                one_node(blocks=1, cells=2),
                held={"a": Block(3, "memory", 0)},
            ),
            "NUMA node 0 is in the group [0, 1], but node 1 of that group is in [1]: groups",
        ),
    ],
)
def test_each_difference_from_the_machine_is_named(
    judge_memory: Command, content: bytes, told: str
) -> None:
    ended = judge_memory(content)
    assert ended.code == 1
    assert told in ended.out
    assert (
        "To fix: drain the node and stop the kubelet; delete /var/lib/kubelet/memory" in ended.out
    )


def test_the_kubelets_words_come_first(judge_memory: Command) -> None:
    ended = judge_memory(memory_written(one_node(total=TOTAL - 4096)), "--json")
    found = ended.json()
    assert found["kind"] == "memory_manager_state"
    assert found["refusal"]["stage"] == "memory"
    assert DIFFERENT in found["refusal"]["message"]
    assert [*found] == ["kind", "refusal", "findings", "fix", "warnings"]


def test_blocks_on_nodes_that_the_machine_does_not_have_are_reported(judge_memory: Command) -> None:
    ended = judge_memory(memory_written(one_node(), held={"a": Block(2, "memory", 5)}))
    assert "uses the NUMA that does not exist" in ended.out
    assert "pod a, container c has a block on NUMA node 1, which the machine does" in ended.out


def test_missing_memory_types_are_reported(judge_memory: Command) -> None:
    bare = NodeMemory(0, {"memory": one_node().tables["memory"]}, 1)
    more = NodeMemory(0, {**one_node().tables, "hugepages-16Mi": MemoryTable(0, 0, 0, 0, 0)}, 1)
    assert (
        "the node has hugepages-1Gi, which the file does not"
        in judge_memory(memory_written(bare)).out
    )
    assert (
        "the file has hugepages-16Mi, which the node does not"
        in judge_memory(memory_written(more)).out
    )


def test_wrong_sums_are_reported(judge_memory: Command) -> None:
    tables = {**one_node().tables, "memory": MemoryTable(TOTAL, GI, TOTAL - GI, 5, TOTAL - GI)}
    ended = judge_memory(memory_written(NodeMemory(0, tables, 1)))
    assert f"reserved + free is {TOTAL - GI + 5}, expected allocatable" in ended.out


def test_a_damaged_memory_file_is_reported_as_such(judge_memory: Command) -> None:
    content = memory_written(one_node())
    ended = judge_memory(content.replace(b'"cells":[0]', b'"cells":[0,0]'))
    assert "checkpoint is corrupted" in ended.out
    assert "checksum mismatch" in ended.out
    cut = judge_memory(content[:50])
    assert "unexpected end of JSON input" in cut.out
    assert "memory_manager_state" in cut.out


def test_the_policy_may_be_set_back_to_that_of_the_file(judge_memory: Command) -> None:
    ended = judge_memory(
        memory_checkpoint.dump(MemoryState(), "None", release("1.36").memory_files)
    )
    assert ended.code == 1
    assert "set the policy back to the one it was written with" in ended.out
    assert (
        judge_memory(
            memory_checkpoint.dump(MemoryState(), "None", release("1.36").memory_files), config=""
        ).code
        == 0
    )


def test_a_configuration_that_never_starts_is_not_put_down_to_the_file(
    judge_memory: Command,
) -> None:
    config = MEMORY_CONFIG.replace("924Mi", "1Gi")
    ended = judge_memory(memory_written(one_node()), config=config)
    assert ended.code == 1
    assert "the kubelet does not start without the file either" in ended.out
    assert "fix the configuration first" in ended.out


@pytest.mark.parametrize(
    "content",
    [
        b'{"machineState":{"0":null,"x":{}},"entries":[],"policyName":"Static"}',
        b'{"machineState":null,"entries":{"a":[]},"policyName":"Static"}',
        b'{"machineState":{"0":{"cells":[{},[]]}},"policyName":"Static"}',
        b'{"machineState":{},"entries":{"a":{"b":[{"numaAffinity":[{}],"type":"x","size":1}]}}}',
        b'{"machineState":{"0":{"cells":5,"memoryMap":{"memory":5}}},"policyName":"Static"}',
        b'{"machineState":{"0":{"memoryMap":5},"--1":{}},"entries":{"a":{"c":[{"size":5}]}}}',
    ],
)
def test_a_file_of_odd_shapes_is_judged_too(judge_memory: Command, content: bytes) -> None:
    assert judge_memory(content).code == 1
