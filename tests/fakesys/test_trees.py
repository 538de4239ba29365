import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders.tables import Table
from numaproof.fakesys import (
    Directory,
    Machine,
    Profile,
    ProfileError,
    Symlink,
    Tree,
    build_tree,
    bundled_profiles,
    lay_out,
    load_profile,
    write_directory,
)

FILES = Table(__file__, "files.yaml")
SMALL = {
    "name": "m",
    "title": "M",
    "source": "S",
    "architecture": "x86_64",
    "topology": {"sockets": 1, "cores_per_socket": 2},
    "nodes": [{"nodes": 0, "memory": "4Gi", "hugepages": {"2Mi": 1, "1Gi": 1}}],
}
"""A machine with two CPUs and a node with a huge page of each size."""


@FILES
def test_files_look_like_the_kernels(row: dict[str, Any]) -> None:
    tree = build_tree(small(**row["fields"]) if "fields" in row else load_profile(row["what"]))
    FILES.check(row, {path: entry_text(tree, path) for path in row["says"]})


def entry_text(tree: Tree, path: str) -> str | None:
    """Returns a file's content without the final newline, a link's target, or a marker."""
    full = path if path.startswith(("sys/", "proc/")) else f"sys/devices/system/{path}"
    match tree.get(full):
        case bytes(content):
            assert content.endswith((b"\n", b"\0"))
            return content.decode().removesuffix("\n")
        case Symlink(target):
            return f"-> {target}"
        case Directory():
            return "(an empty folder)"
    return "(a folder)" if any(one.startswith(f"{full}/") for one in tree) else None


def small(**fields: object) -> Profile:
    """The profile `SMALL` with changed fields."""
    return msgspec.convert({**SMALL, **fields}, Profile)


def test_isolated_cpus_exist() -> None:
    with pytest.raises(ProfileError, match=r"isolated: CPU 2 does not exist \(the CPUs are 0-1\)"):
        build_tree(small(isolated=2))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nohz_full": 2}, r"nohz_full: CPU 2 does not exist \(the CPUs are 0-1\)"),
        ({"possible_nodes": 1}, "possible_nodes: must include all nodes"),
        ({"surplus": "1-3"}, "surplus: must not include possible CPUs"),
        (
            {"nodes": [{"nodes": 0, "memory": "4Gi", "access": [{"initiators": 3}]}]},
            "nodes: initiator 3 is not a node",
        ),
        (
            {"topology": {"sockets": 3, "cores_per_socket": 1, "cores_per_cluster": 1,
                          "cluster_ids": "0-1"}},
            "topology.cluster_ids: 3 clusters cannot share 2 cluster ids evenly",
        ),
    ],
)  # fmt: skip
def test_what_kernels_do_not_write_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        build_tree(small(**fields))


def test_the_discovery_tree_is_a_subset_of_the_full_one() -> None:
    profile = load_profile("epyc-7451-2s")
    full, part = build_tree(profile), build_tree(profile, detail="discovery")
    assert dict(part).items() <= dict(full).items()
    assert not {"sys/devices/system/cpu/cpu0/node0", "proc/stat"} & part.keys()
    assert len(part) < len(full) / 2


def test_building_twice_gives_the_same_tree() -> None:
    first = build_tree(load_profile("power9-ac922"))
    second = build_tree(load_profile("power9-ac922"))
    assert list(first.items()) == list(second.items())
    assert len(first) == len(list(first))


def online(machine: Machine) -> list[int]:
    return [cpu.number for cpu in machine.cpus if cpu.online]


def counts(machine: Machine) -> tuple[int, int, int, int]:
    """Returns CPU, core, package and L3 cache of each online CPU."""
    cpus = [machine.by_number[number] for number in online(machine)]
    l3 = [group for kind in machine.caches if kind.level == 3 for group in kind.groups]
    return (
        len(cpus),
        len({cpu.threads for cpu in cpus}),
        len({cpu.socket if cpu.package_group is None else cpu.package_group for cpu in cpus}),
        sum(any(machine.by_number[cpu].online for cpu in group.cpus) for group in l3),
    )


@pytest.fixture(scope="module", params=bundled_profiles())
def machine_directory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Machine, Path]:
    """A bundled machine and the directory with its tree."""
    profile = load_profile(str(request.param))
    if any(cpu.topology != cpu.online for cpu in lay_out(profile).cpus):
        pytest.skip("lscpu and hwloc need a topology folder for each online CPU")
    if any(node.cpulist for node in lay_out(profile).nodes):
        pytest.skip("lscpu and hwloc read the lists of nodes, instead of their links")
    if "proc/cpuinfo" in profile.lacks:
        pytest.skip("lscpu needs /proc/cpuinfo")
    root = tmp_path_factory.mktemp("machine") / "root"
    write_directory(build_tree(profile), root)
    return lay_out(profile), root


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="lscpu (util-linux) is not installed")
def test_lscpu_agrees_with_the_profile(
    machine_directory: tuple[Machine, Path],
) -> None:
    machine, root = machine_directory
    command = ["lscpu", "--sysroot", str(root), "-p=CPU,CORE,SOCKET,NODE,CACHE"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in output.splitlines() if not line.startswith("#")]
    cpus, cores, sockets, l3 = counts(machine)
    assert [int(row[0]) for row in rows] == online(machine)
    assert len({row[1] for row in rows}) == cores
    assert len({row[2] for row in rows}) == sockets
    assert len(rows) == cpus
    if machine.nodes:
        # lscpu numbers nodes by position, not by id.
        place = {cpu: i for i, node in enumerate(machine.nodes) for cpu in node.cpus}
        assert len({row[3] for row in rows}) == len({place[n] for n in online(machine)})
    if l3:
        assert len({row[-1] for row in rows}) == l3


@pytest.mark.skipif(
    shutil.which("lstopo-no-graphics") is None, reason="lstopo-no-graphics (hwloc) is not installed"
)
def test_hwloc_agrees_with_the_profile(
    machine_directory: tuple[Machine, Path],
) -> None:
    machine, root = machine_directory
    command = ["lstopo-no-graphics", "--if", "fsroot", "-i", str(root), "--no-io", "--of", "xml"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = ("PU", "Core", "Package", "L3Cache", "NUMANode")
    found = [output.count(f'<object type="{kind}"') for kind in kinds]
    assert found == [*counts(machine), max(1, len(machine.nodes))]
