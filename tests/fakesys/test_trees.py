import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml

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
    load,
    load_profile,
    parse_profile,
    write_directory,
)
from numaproof.fakesys.ranges import parse_list

FILES = yaml.safe_load(Path(__file__).with_name("files.yaml").read_bytes())
CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"


def text(tree: Tree, path: str) -> str:
    entry = tree[path]
    assert isinstance(entry, bytes)
    return entry.decode()


@pytest.fixture(scope="module")
def xeon() -> Tree:
    return build_tree(load_profile("xeon-gold-6230-2s-snc2"))


@pytest.mark.parametrize("name", FILES)
def test_files_say_what_the_kernel_writes(name: str) -> None:
    tree = build_tree(load_profile(name))
    for path, content in FILES[name].items():
        full = path if path.startswith("sys/") else f"sys/devices/system/{path}"
        if content is None:
            assert not [one for one in tree if one == full or one.startswith(f"{full}/")]
        else:
            assert text(tree, full) == f"{content}\n", path


def test_nodes_link_to_their_cpus(xeon: Tree) -> None:
    assert xeon[f"{NODE}/node1/cpu50"] == Symlink("../../cpu/cpu50")
    assert f"{NODE}/node0/cpu50" not in xeon


def test_cpus_link_to_their_nodes(xeon: Tree) -> None:
    assert xeon[f"{CPU}/cpu50/node1"] == Symlink("../../node/node1")
    assert [path for path in xeon if path.startswith(f"{CPU}/cpu50/node")] == [f"{CPU}/cpu50/node1"]


def small(**fields: object) -> Profile:
    """A machine of two CPUs and a node with a huge page of each size."""
    return msgspec.convert(
        {
            "name": "m",
            "title": "M",
            "source": "S",
            "architecture": "x86_64",
            "topology": {"sockets": 1, "cores_per_socket": 2},
            "nodes": [{"nodes": 0, "memory": "4Gi", "hugepages": {"2Mi": 1, "1Gi": 1}}],
            **fields,
        },
        Profile,
    )


def test_older_kernels_lack_newer_files() -> None:
    full, lists, masks = (build_tree(small(sysfs=form)) for form in ("full", "lists", "masks"))
    newer = {f"{CPU}/isolated", f"{CPU}/nohz_full"}
    assert newer <= set(full)
    assert not newer & set(lists)
    links = {f"{CPU}/kernel_max", f"{CPU}/cpu0/node0", f"{CPU}/cpu1/node0"}
    assert links <= set(lists)
    assert not links & set(masks)


def test_newer_kernels_say_how_much_memory_all_huge_pages_take() -> None:
    full, lists, masks = (
        text(build_tree(small(sysfs=form)), "proc/meminfo") for form in ("full", "lists", "masks")
    )
    assert full.endswith("Hugepagesize:       2048 kB\nHugetlb:         1050624 kB\n")
    assert "HugePages_Total:       1\n" in full
    assert lists.endswith("Hugepagesize:       2048 kB\n")
    assert "MemAvailable:" in lists
    assert "MemAvailable:" not in masks


def test_the_cpus_that_have_done_something_are_those_that_are_online() -> None:
    tree = build_tree(load_profile("offline-half-cores"))
    rows = text(tree, "proc/stat").splitlines()
    assert rows[0].startswith("cpu  ")
    shown = [row.split()[0] for row in rows[1:] if row.startswith("cpu")]
    online = parse_list("0-6,8-16,19-22,24,26-31", 32)
    assert shown == [f"cpu{number}" for number in online]
    assert all(len(row.split()) == 11 for row in rows if row.startswith("cpu"))
    assert "proc/stat" not in build_tree(load_profile("offline-half-cores"), detail="discovery")


def test_a_node_counts_the_pages_of_the_default_size() -> None:
    tree = build_tree(small(nodes=[{"nodes": 0, "memory": "4Gi", "hugepages": {"64Ki": 3}}]))
    shown = text(tree, f"{NODE}/node0/meminfo")
    assert "Node 0 HugePages_Total:     3\nNode 0 HugePages_Free:      3\n" in shown


def test_isolated_cpus_are_those_of_the_profile() -> None:
    assert text(build_tree(small(isolated=1)), f"{CPU}/isolated") == "1\n"
    assert text(build_tree(small(isolated="0-1", sysfs="lists")), f"{CPU}/isolated") == "0-1\n"
    with pytest.raises(ProfileError, match=r"isolated: CPU 2 does not exist \(the CPUs are 0-1\)"):
        build_tree(small(isolated=2))


def test_the_boot_cpu_of_an_older_s390x_can_be_switched_off() -> None:
    assert f"{CPU}/cpu0/online" in build_tree(small(architecture="s390x", sysfs="lists"))


def test_totals_of_memory_and_pages_are_the_sums_of_the_nodes() -> None:
    tree = build_tree(load_profile("hugepages-2s"))
    assert f"MemTotal:       {(95303 + 96728) * 1024} kB\n" in text(tree, "proc/meminfo")
    assert f"Node 0 MemTotal: {95303 * 1024:>14} kB\n" in text(tree, f"{NODE}/node0/meminfo")


def test_an_offline_cpu_is_in_its_node_and_not_in_cpuinfo() -> None:
    tree = build_tree(load_profile("offline-half-cores"))
    assert f"{NODE}/node0/cpu17" in tree
    assert "processor\t: 17\n" not in text(tree, "proc/cpuinfo")


def test_cpuinfo_counts_the_processors_of_s390x() -> None:
    tree = build_tree(load_profile("z14-drawers"))
    assert "# processors    : 32\n" in text(tree, "proc/cpuinfo")


@pytest.mark.parametrize(
    ("architecture", "sign"),
    [
        ("x86_64", "physical id\t: 0\nsiblings\t: 2\ncore id\t\t: 0\ncpu cores\t: 2\n"),
        ("i386", "flags\t\t: fpu tsc msr pae cx8 apic cmov pat mmx fxsr sse sse2 ht\n"),
        ("arm64", "CPU part\t: 0xd0c\n"),
        ("arm", "processor\t: 0\n"),
        ("ppc64", "cpu\t\t: POWER9, altivec supported\nclock\t\t: 2300.000000MHz\n"),
        ("s390x", "vendor_id       : IBM/S390\n"),
        ("ia64", "physical id: 0\ncore id    : 0\n"),
        ("riscv64", "processor\t: 1\n"),
    ],
)
def test_cpuinfo_has_the_form_of_its_architecture(architecture: str, sign: str) -> None:
    profile = parse_profile(
        load(
            f"name: m\ntitle: M\nsource: S\narchitecture: {architecture}\n"
            "topology: {sockets: 1, cores_per_socket: 2, nodes: 0}\nmemory: 1Gi\n"
            "cpuinfo: {fields: {odd: thing}, trailer: {end: here}}\n"
        )
    )
    shown = text(build_tree(profile), "proc/cpuinfo")
    assert sign in shown
    assert "odd" in shown


QUIRKS = """
name: m
title: M
source: S
architecture: x86_64
sysfs: masks
topology: {sockets: 1, cores_per_socket: 4, nodes: 1}
nodes: [{nodes: 0, memory: none}]
caches:
  - {level: 2, type: Unified, size: none, shared: [0-1, 2-3], index: 5, sets: 7}
  - {level: 3, type: Unified, size: 1M, shared: machine, ids: none}
lacks: ["cpu/cpu{1-2}", "node/node*/cpumap"]
files: {"cpu/cpu{0,3}/topology/core_siblings": ff, cpu/cpu9/note: hello}
trailing_nul: [node/online]
"""


def test_quirks_are_carried_out_last() -> None:
    tree = build_tree(parse_profile(load(QUIRKS)))
    assert text(tree, f"{CPU}/cpu3/topology/core_siblings") == "ff\n"
    assert text(tree, f"{CPU}/cpu9/note") == "hello\n"
    assert tree[f"{CPU}/cpu1"] == Directory()
    assert f"{NODE}/node0/cpumap" not in tree
    assert f"{NODE}/node0/meminfo" not in tree
    assert tree[f"{NODE}/online"] == b"0\n\0"
    assert f"{CPU}/cpu0/cache/index5/size" not in tree
    assert text(tree, f"{CPU}/cpu0/cache/index5/number_of_sets") == "7\n"
    assert f"{CPU}/cpu0/cache/index6/shared_cpu_list" not in tree


def test_the_tree_for_discovery_is_part_of_the_full_one() -> None:
    profile = load_profile("epyc-7451-2s")
    full, part = build_tree(profile), build_tree(profile, detail="discovery")
    assert dict(part).items() <= dict(full).items()
    assert f"{CPU}/cpu0/node0" not in part
    assert len(part) < len(full) / 2


def test_building_twice_gives_the_same_tree() -> None:
    first = build_tree(load_profile("power9-ac922"))
    second = build_tree(load_profile("power9-ac922"))
    assert list(first.items()) == list(second.items())
    assert len(first) == len(list(first))


def online(machine: Machine) -> list[int]:
    return [cpu.number for cpu in machine.cpus if cpu.online]


def counts(machine: Machine) -> tuple[int, int, int, int]:
    """CPUs, cores, packages and L3 caches with an online CPU."""
    cpus = [machine.by_number[number] for number in online(machine)]
    l3 = [group for kind in machine.caches if kind.level == 3 for group in kind.groups]
    return (
        len(cpus),
        len({cpu.core if cpu.thread_group is None else cpu.thread_group for cpu in cpus}),
        len({cpu.socket if cpu.package_group is None else cpu.package_group for cpu in cpus}),
        sum(any(machine.by_number[cpu].online for cpu in group.cpus) for group in l3),
    )


@pytest.fixture(scope="module", params=bundled_profiles())
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Machine, Path]:
    """A bundled machine, and the directory that holds its tree."""
    profile = load_profile(str(request.param))
    if any(cpu.topology != cpu.online for cpu in lay_out(profile).cpus):
        pytest.skip("lscpu and hwloc want a topology folder of each CPU that is online")
    if "proc/cpuinfo" in profile.lacks:
        pytest.skip("lscpu wants /proc/cpuinfo")
    root = tmp_path_factory.mktemp("machine") / "root"
    write_directory(build_tree(profile), root)
    return lay_out(profile), root


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="lscpu (util-linux) is not installed")
def test_lscpu_reads_the_machine_as_the_profile_says(written: tuple[Machine, Path]) -> None:
    machine, root = written
    command = ["lscpu", "--sysroot", str(root), "-p=CPU,CORE,SOCKET,NODE,CACHE"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in output.splitlines() if not line.startswith("#")]
    cpus, cores, sockets, l3 = counts(machine)
    assert [int(row[0]) for row in rows] == online(machine)
    assert len({row[1] for row in rows}) == cores
    assert len({row[2] for row in rows}) == sockets
    assert len(rows) == cpus
    if machine.nodes:
        # lscpu counts nodes by their place, not by their number.
        place = {cpu: i for i, node in enumerate(machine.nodes) for cpu in node.cpus}
        assert len({row[3] for row in rows}) == len({place[n] for n in online(machine)})
    if l3:
        assert len({row[-1] for row in rows}) == l3


@pytest.mark.skipif(
    shutil.which("lstopo-no-graphics") is None, reason="lstopo-no-graphics (hwloc) is not installed"
)
def test_hwloc_reads_the_machine_as_the_profile_says(written: tuple[Machine, Path]) -> None:
    machine, root = written
    command = ["lstopo-no-graphics", "--if", "fsroot", "-i", str(root), "--no-io", "--of", "xml"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = ("PU", "Core", "Package", "L3Cache", "NUMANode")
    found = [output.count(f'<object type="{kind}"') for kind in kinds]
    assert found == [*counts(machine), max(1, len(machine.nodes))]
