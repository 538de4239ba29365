"""The machine in a line of a kubelet's log is the one that it discovered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.machines import GIB, of_memory, regular
from numaproof import fakesys
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.formats.machines.kubelet_log import LINE, parse, read
from numaproof.protocol.machine import HugePages

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.protocol.machine import Core, MachineInfo, Node, UncoreCache

UNDISCOVERED = {"vm-no-cpuinfo", "vm-no-meminfo"}


def go(value: Any) -> str:
    """A value as Go's verb ``%+v`` shows it: a structure's fields are given as a dictionary."""
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}:{go(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + " ".join(map(go, value)) + "]"
    return str(value)


def pages(pools: Iterable[HugePages] | None) -> list[dict[str, int]]:
    return [{"PageSize": one.page_size, "NumPages": one.num_pages} for one in pools or ()]


def caches(values: Iterable[UncoreCache] | None) -> list[dict[str, Any]]:
    return [
        {"Id": one.id, "Size": one.size, "Type": one.type, "Level": one.level}
        for one in values or ()
    ]


def core(one: Core) -> dict[str, Any]:
    return {
        "Id": one.core_id,
        "Threads": one.thread_ids or (),
        "Caches": caches(one.caches),
        "UncoreCaches": caches(one.uncore_caches),
        "SocketID": one.socket_id,
        "BookID": "",
        "DrawerID": "",
    }


def node(one: Node) -> dict[str, Any]:
    return {
        "Id": one.node_id,
        "Memory": one.memory,
        "HugePages": pages(one.hugepages),
        "Cores": [core(each) for each in one.cores or ()],
        "Caches": caches(one.caches),
        "Distances": one.distances or (),
    }


def line(machine: MachineInfo, **others: Any) -> str:
    """The line for a machine; `others` replaces what the line says apart from the machine."""
    disk = {"Device": "/dev/vda", "DeviceMajor": 254, "Capacity": 270, "HasInodes": "true"}
    fields = {
        "Timestamp": "2026-11-26 16:32:03.140536707 +0000 UTC m=+0.715570223",
        "CPUVendorID": "GenuineIntel",
        "NumCores": machine.num_cores,
        "NumPhysicalCores": machine.num_physical_cores,
        "NumSockets": machine.num_sockets,
        "NumBooks": 0,
        "CpuFrequency": 2100000,
        "MemoryCapacity": machine.memory_capacity,
        "SwapCapacity": 0,
        "MemoryByType": "map[Unbuffered-DDR4:0xc000123456]",
        "NVMInfo": {"MemoryModeCapacity": 0, "AppDirectModeCapacity": 0, "AvgPowerBudget": 0},
        "HugePages": pages(machine.hugepages),
        "MachineID": "3d1219c7c4c5404aaa1f6d2a48adfda4",
        "SystemUUID": "3d1219c7-c4c5-404a-aa1f-6d2a48adfda4",
        "BootID": "",
        "Filesystems": [disk, {"Device": "/run/user/0", "Type": "vfs"}],
        "DiskMap": "map[254:0:{Name:vda Major:254 Minor:0 Size:274877906944 Scheduler:none}]",
        "NetworkDevices": [{"Name": "eth0", "MacAddress": "02:00:00:00:00:01", "Mtu": 1500}],
        "Topology": [node(one) for one in machine.topology or ()],
        "CloudProvider": "Unknown",
        "InstanceType": "Unknown",
        "InstanceID": "None",
    }
    return LINE + go(fields | others)


def described(machine: MachineInfo) -> Any:
    """A machine as plain values; Go shows an empty list like none."""
    text = msgspec.json.encode(machine).replace(b":[]", b":null")
    return msgspec.json.decode(text)


@pytest.mark.parametrize("profile", fakesys.bundled_profiles())
def test_every_bundled_machine_is_read_back(profile: str, tmp_path: Path) -> None:
    machine = ProfileMachine(fakesys.load_profile(profile), tmp_path).info
    assert (machine is None) is (profile in UNDISCOVERED)
    if machine is not None:
        assert described(parse(line(machine))) == described(machine)


@pytest.mark.parametrize(
    "machine",
    [
        regular(2, sockets=2, cores_per_cache=2, hugepages=(HugePages(2048, 3), HugePages(4, 0))),
        of_memory(GIB, 0),
        of_memory(),
    ],
    ids=["regular", "without CPUs", "without nodes"],
)
def test_machines_with_less_are_read_back(machine: MachineInfo) -> None:
    assert described(parse(line(machine))) == described(machine)


@pytest.mark.parametrize(
    "others",
    [
        {"CPUVendorID": "{odd: [name"},
        {"Timestamp": "now"},
        {"MachineID": "", "SystemUUID": "", "CloudProvider": "", "InstanceID": ""},
        {"Filesystems": [{"Device": "/media/My Disk (1)", "Type": "vfs"}, {"Device": "a]b}c{d"}]},
        {"Filesystems": [{"Device": "a: [b", "DeviceMajor": 0}]},
        {"DiskMap": "map[]", "NetworkDevices": []},
        {"DiskMap": "map[8:0:{Name:my disk] Major:8}]"},
        {"SystemUUID": "Not Settable", "BootID": "a b"},
    ],
    ids=str,
)
def test_names_of_other_things_may_contain_anything(others: dict[str, Any]) -> None:
    assert parse(line(regular(2), **others)) == regular(2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        LINE,
        f"{LINE}{{NumCores:8}}",
        f"{LINE}{{NumCores:8 Topology:[]}}",
        f"{LINE}{{NumCores:8 MachineID: Topology:[",
        f"{LINE}{{NumCores:8 MachineID: Topology:[{{Id 0}}]}}",
        f"{LINE}{{NumCores:8 MachineID: Topology:[{{Id:0",
        f"{LINE}{{NumCores MachineID: Topology:[]",
    ],
)
def test_another_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no machine|expected a field|cut off"):
        parse(text)


def test_the_last_machine_of_a_log_counts_and_others_are_noted() -> None:
    before, after = line(regular(2)), line(regular(4))
    assert read("log", f"{after}\n{after}\n").notes == ()
    found = read("log", f"{before}\n{after}\n")
    assert described(found.machine) == described(regular(4))
    assert found.notes == ("shows other NUMA nodes in line 1; those of line 2 count",)
