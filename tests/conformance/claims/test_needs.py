"""The claims that a call needs: `needs.yaml` omits those that every call needs."""

from __future__ import annotations

from typing import Any

from builders.tables import Table
from numaproof.conformance.claims import needs
from numaproof.conformance.claims.needs import EarlierStart
from numaproof.protocol import messages
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node
from numaproof.protocol.sets import CPUSet

NEEDS = Table(__file__, "needs.yaml")
RESERVED = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}
ONE_CPU = MachineInfo(num_cores=1, topology=(Node(0, cores=(Core(0, (0,)),)),))


@NEEDS
def test_a_calls_content_determines_its_needs(row: dict[str, Any]) -> None:
    earlier = None
    args: messages.Args
    if "config" in row:
        operation, more = "start", row.get("more", {})
        args = messages.StartArgs(config={**RESERVED, **row["config"]}, state_dir="", **more)
        if "earlier" in row:
            earlier = EarlierStart(dict(RESERVED), MachineInfo(num_cores=row["earlier"]))
    elif "pod" in row:
        operation = "admit"
        args = messages.AdmitArgs({"metadata": {"uid": "a"}, "spec": row["pod"]})
    elif "merge" in row:
        operation, args = "merge", messages.MergeArgs((0,), row["merge"], ())
    elif "assign" in row:
        operation, args = "assign", messages.AssignArgs(MachineInfo(), CPUSet(), 1, row["assign"])
    else:
        operation, args = "remove", messages.RemoveArgs("a", row["remove"])
    machine = ONE_CPU if row.get("cpus") else MachineInfo()
    found = needs.of_call(operation, args, row.get("kubernetes", "1.36"), machine, earlier)
    NEEDS.check(row, sorted({*found} - {f"operation {operation}", *BY_DEFAULT}))


BY_DEFAULT = (
    "CPU Manager policy static",
    "Memory Manager policy None",
    "Topology Manager policy none",
    "Topology Manager scope container",
)


def test_huge_pages_of_the_machine_matter_to_static_memory() -> None:
    def needs_huge_pages(pages: int, **config: Any) -> bool:
        node = Node(0, hugepages=(HugePages(2048, pages),))
        args = messages.StartArgs(config={**RESERVED, **config}, state_dir="")
        return "feature huge-pages" in needs.of_call(
            "start", args, "1.37", MachineInfo(topology=(node,))
        )

    assert needs_huge_pages(1, memoryManagerPolicy="Static")
    assert not needs_huge_pages(0, memoryManagerPolicy="Static")
    assert not needs_huge_pages(1)


def test_parts_of_bytes_need_validation() -> None:
    def needs_validation(amount: str) -> bool:
        config = {**RESERVED, "systemReserved": {"memory": amount}}
        args = messages.StartArgs(config=config, state_dir="")
        return "feature configuration-validation" in needs.of_call("start", args, "1.37", ONE_CPU)

    assert needs_validation("1500m")
    assert not needs_validation("1000m")


def test_devices_need_their_operation() -> None:
    def needs_of_start(**more: Any) -> tuple[str, ...]:
        args = messages.StartArgs(config=config, state_dir="", **more)
        return tuple(needs.of_call("start", args, "1.37", ONE_CPU))

    config: dict[str, Any] = dict(RESERVED)
    nic = messages.DeviceResource("vendor.example/nic", ())
    assert "operation devices" in needs_of_start(devices=(nic,))
    assert "feature configuration-validation" not in needs_of_start()
    config["kubeReserved"] = {"cpu": 1.5}
    assert "feature configuration-validation" in needs_of_start()
