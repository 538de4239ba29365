from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.checkout import SHARED
from numaproof.fakesys import (
    Profile,
    Tree,
    TreeError,
    TreePath,
    build_tree,
    bundled_profiles,
    capture,
    check_profile,
    dump_profile,
    lay_out,
    load,
    load_profile,
    open_tree,
    parse_profile,
    write_directory,
)
from numaproof.fakesys.capture import find_residue
from numaproof.fakesys.profile import (
    Access,
    CacheRow,
    CpuInfo,
    CpuRow,
    DerivedDistances,
    NodeRow,
    Topology,
)
from numaproof.fakesys.snapshot import Snapshot, meaning, read_snapshot
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover

TREES = sorted((SHARED / "machines/trees").glob("*.tar.*"))


def means_the_same(tree: Tree, snapshot: Snapshot) -> None:
    """Asserts that the tree has every file of the snapshot with the same content."""
    residue = find_residue(snapshot, tree)
    assert not residue.lacks
    assert not residue.files


def discovery_outcome(root: Path | TreePath) -> object:
    try:
        return msgspec.to_builtins(discover(root))
    except DiscoveryError as error:
        return str(error).replace(str(root), "ROOT")


@pytest.mark.slow
@pytest.mark.skipif(not TREES, reason=f"no recorded trees in {SHARED}/machines/trees")
@pytest.mark.parametrize("archive", TREES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_a_recorded_machine_is_captured_completely(archive: Path) -> None:
    with open_tree(archive) as root:
        captured = capture(root, "captured")
        made = build_tree(captured)
        means_the_same(made, read_snapshot(root))
        text = dump_profile(captured)
        assert parse_profile(load(text)) == captured
        assert text.count("\n") < 100, "a profile is to be read"
        expected = discovery_outcome(root)
        for tree in (made, build_tree(captured, detail="discovery")):
            assert discovery_outcome(TreePath.root(tree)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_profiles())
def test_a_bundled_machine_is_captured_from_its_own_tree(name: str) -> None:
    profile = load_profile(name)
    root = TreePath.root(build_tree(profile))
    captured = capture(root, name)
    means_the_same(build_tree(captured), read_snapshot(root))
    assert not captured.files
    assert set(captured.lacks) == set(profile.lacks)
    if profile.topology and profile.topology.nodes and not profile.cpus:
        assert captured.topology
        assert lay_out(captured).cpus == lay_out(profile).cpus


@st.composite
def machines(draw: st.DrawFn) -> Profile:
    """Generates small regular machines with some unusual rows."""
    sockets, cores = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    threads = draw(st.sampled_from([1, 2, 4]))
    count = sockets * cores * threads
    nodes = draw(
        st.sampled_from([n for n in (0, 1, 2, 3, 4, 6) if n == 0 or sockets * cores % n == 0])
    )
    topology = Topology(
        sockets=sockets,
        cores_per_socket=cores,
        threads_per_core=threads,
        nodes=nodes,
        numbering=draw(st.sampled_from(["cores-first", "siblings-adjacent", "socket-by-socket"])),
        dies_per_socket=draw(st.sampled_from([0, 1])),
        socket_ids=draw(st.sampled_from([None, f"0-{sockets - 1}", "-1", "none"])),
        core_ids=draw(st.sampled_from([None, "none", f"0-{sockets * cores * 4 - 1}/4"])),
    )
    rows = [
        CpuRow(cpus=cpu, online=False, topology=draw(st.sampled_from([None, True])))
        for cpu in sorted(draw(st.sets(st.integers(1, max(count - 1, 1)), max_size=2)))
        if cpu < count
    ]
    node_rows = []
    if nodes:
        node_rows.append(
            NodeRow(
                nodes=f"0-{nodes - 1}" if nodes > 1 else 0,
                memory=draw(st.sampled_from(["1Gi", "none", "1000Ki"])),
                hugepages=draw(st.sampled_from([None, {"2Mi": 0, "1Gi": 3}])),
            )
        )
        if draw(st.booleans()):
            node_rows.append(NodeRow(nodes=nodes + 3, memory="512Mi"))
    caches = [
        CacheRow(
            level=1,
            type="Data",
            size="32K",
            shared="cpu",
            ids=draw(st.sampled_from([None, "none"])),
        ),
        CacheRow(
            level=3,
            type="Unified",
            size=draw(st.sampled_from(["8M", "none"])),
            shared=draw(
                st.sampled_from(["core", "socket", "machine", "2 cores", (f"0-{count - 1}",)])
            ),
            line=64,
            ways=draw(st.sampled_from([None, 0, 16])),
        ),
    ]
    return Profile(
        name="drawn",
        title="Drawn",
        source="Hypothesis",
        architecture=draw(st.sampled_from(["x86_64", "arm64", "ppc64", "s390x", "ia64"])),
        sysfs=draw(st.sampled_from(["full", "lists", "masks"])),
        topology=topology,
        cpus=tuple(rows),
        nodes=tuple(node_rows),
        distances=draw(st.sampled_from([None, DerivedDistances(local=1, near=2, far=3)])),
        caches=tuple(caches) if draw(st.booleans()) else (),
        memory="4Gi",
        lacks=tuple(
            draw(st.sets(st.sampled_from(["cpu/online", "cpu/cpu0/topology", "cpu/possible"])))
        ),
        files=draw(st.sampled_from([{}, {"cpu/present": "0"}])),
        trailing_nul=draw(st.sampled_from([(), ("proc/meminfo",)])),
    )


@settings(max_examples=40, deadline=None)
@given(machines())
def test_any_machine_survives_capture_dump_and_build(profile: Profile) -> None:
    check_profile(profile)
    root = TreePath.root(build_tree(profile))
    captured = parse_profile(load(dump_profile(capture(root, "drawn"))))
    again = build_tree(captured)
    means_the_same(again, read_snapshot(root))
    assert discovery_outcome(TreePath.root(again)) == discovery_outcome(root)


def test_capturing_twice_gives_the_same_text(tmp_path: Path) -> None:
    write_directory(build_tree(load_profile("vm-sparse-cpus")), tmp_path / "root")
    first = dump_profile(capture(tmp_path / "root", "twice", title="Mine", source="Here"))
    assert first == dump_profile(capture(tmp_path / "root", "twice", title="Mine", source="Here"))
    assert first.startswith("name: twice\ntitle: Mine\nsource: Here\narchitecture: x86_64\n")


def test_the_title_describes_the_shape(tmp_path: Path) -> None:
    write_directory(build_tree(load_profile("laptop-4c8t")), tmp_path / "root")
    assert capture(tmp_path / "root", "x").title == "1 socket, 4 cores, 8 CPUs, 1 NUMA node"


@pytest.mark.skipif(not Path("/sys/devices/system/cpu/cpu0").exists(), reason="no Linux /sys here")
def test_the_current_machine_can_be_captured() -> None:
    captured = capture(Path("/"), "here")
    assert len(captured.cpus) + (captured.topology is not None) > 0
    means_the_same(build_tree(captured), read_snapshot(Path("/")))


def test_unsupported_trees_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="no CPUs found in sys/devices/system/cpu"):
        capture(tmp_path, "x")
    (tmp_path / "sys/devices/system/cpu/cpu9000").mkdir(parents=True)
    with pytest.raises(TreeError, match="CPU 9000 exceeds Linux's limit"):
        capture(tmp_path, "x")
    with pytest.raises(TreeError, match="invalid profile name 'My Machine'"):
        capture(tmp_path, "My Machine")


def test_malformed_files_are_kept_verbatim(tmp_path: Path) -> None:
    write_directory(build_tree(load_profile("hugepages-2s")), tmp_path / "root")
    cpu = tmp_path / "root/sys/devices/system/cpu"
    (cpu / "possible").write_text("all of them\n")
    (cpu / "cpu3/topology/core_id").write_text("three\n")
    (cpu / "cpu4/cache/index0/level").write_text("x\n")
    (cpu / "cpu5/cache/index3/shared_cpu_list").write_text("7\n")
    (cpu / "cpu6/cache/index3/id").write_text("77\n")
    (tmp_path / "root/proc/cpuinfo").write_text("processor : 0\n\nprocessor : 0\n")
    captured = capture(tmp_path / "root", "odd")
    means_the_same(build_tree(captured), read_snapshot(tmp_path / "root"))
    assert captured.files["cpu/possible"] == "all of them"
    assert captured.files["cpu/cpu3/topology/core_id"] == "three"


def test_siblings_that_contradict_ids_become_groups(tmp_path: Path) -> None:
    profile = load_profile("vm-24-sockets")
    grouped = CpuRow(cpus="0-23", package_group="0-1:12", thread_group="0-11:2")
    tree = build_tree(msgspec.structs.replace(profile, cpus=(grouped,)))
    write_directory(tree, tmp_path / "root")
    captured = capture(tmp_path / "root", "grouped")
    assert not captured.files
    means_the_same(build_tree(captured), read_snapshot(tmp_path / "root"))


def test_isolated_cpus_and_the_kernels_limit_are_captured(tmp_path: Path) -> None:
    profile = load_profile("core-i7-9700")
    bounded = msgspec.structs.replace(profile, isolated="2-3,7", kernel_max=255)
    write_directory(build_tree(bounded), tmp_path / "root")
    captured = capture(tmp_path / "root", "bounded")
    assert (captured.isolated, captured.kernel_max) == ("2-3,7", 255)
    assert not captured.files
    (tmp_path / "root/sys/devices/system/cpu/isolated").write_text("8\n")
    assert capture(tmp_path / "root", "odd").files == {"cpu/isolated": "8"}


def test_whatever_a_kernel_may_report_is_captured_in_a_field(tmp_path: Path) -> None:
    profile = Profile(
        name="booted",
        title="2 sockets, 4 cores, 8 CPUs, 3 NUMA nodes",
        source="Here",
        architecture="x86_64",
        topology=Topology(
            sockets=2,
            cores_per_socket=2,
            threads_per_core=2,
            nodes=2,
            cores_per_cluster=1,
            cluster_ids="0-6/2",
            numbering="siblings-adjacent",
        ),
        possible="0-9",
        surplus="10-11",
        isolated="6-7",
        nohz_full="5-7",
        smt="off",
        nodes=(
            NodeRow(nodes=0, memory="1Gi", access=(Access(initiators=0, read_latency=10),)),
            NodeRow(nodes=1, memory="1Gi", access=(Access(initiators="0-1", write_bandwidth=9),)),
            NodeRow(nodes=4, memory="none", cpulist="0-3"),
        ),
        possible_nodes="0-5",
        caches=(CacheRow(level=3, type="Unified", size="1Mi", shared="socket", ids="0-7"),),
        cpuinfo=CpuInfo(vendor="GenuineIntel", model="Virtual CPU"),
    )
    write_directory(build_tree(profile), tmp_path / "root")
    assert capture(tmp_path / "root", "booted", source="Here") == profile


def test_what_no_field_can_describe_stays_in_files(tmp_path: Path) -> None:
    profile = load_profile("x86-hmat")
    write_directory(build_tree(profile), tmp_path / "root")
    node = tmp_path / "root/sys/devices/system/node"
    (node / "possible").write_text("0-2,2000\n")
    (node / "node1/access0/initiators/read_latency").write_text(f"{2**50}\n")
    (tmp_path / "root/sys/devices/system/cpu/offline").write_text(",9000\n")
    (tmp_path / "root/sys/devices/system/cpu/smt/control").write_text("later\n")
    captured = capture(tmp_path / "root", "odd")
    means_the_same(build_tree(captured), read_snapshot(tmp_path / "root"))
    assert captured.files == {
        "cpu/offline": ",9000",
        "cpu/smt/control": "later",
        "node/possible": "0-2,2000",
        "node/node1/access0/initiators/read_latency": str(2**50),
    }


def test_core_ids_that_restart_in_each_cluster_are_distinct_cores(tmp_path: Path) -> None:
    topology = Topology(sockets=1, cores_per_socket=8, nodes=0, cores_per_cluster=4, core_ids="0-3")
    profile = msgspec.structs.replace(load_profile("raspberry-pi-4"), topology=topology)
    write_directory(build_tree(profile), tmp_path / "root")
    siblings = tmp_path / "root/sys/devices/system/cpu/cpu4/topology/thread_siblings_list"
    assert siblings.read_text() == "4\n"
    captured = capture(tmp_path / "root", "clusters")
    assert captured.topology == topology
    assert captured.title == "1 socket, 8 cores, 8 CPUs, 0 NUMA nodes"


def test_uneven_dies_are_described_by_a_row(tmp_path: Path) -> None:
    profile = load_profile("core-i7-9700")
    uneven = msgspec.structs.replace(profile, cpus=(CpuRow(cpus="0-7", die="0*3,1*3,2*2"),))
    write_directory(build_tree(uneven), tmp_path / "root")
    captured = capture(tmp_path / "root", "uneven")
    assert [cpu.die for cpu in lay_out(captured).cpus] == [0, 0, 0, 1, 1, 1, 2, 2]
    means_the_same(build_tree(captured), read_snapshot(tmp_path / "root"))


@pytest.mark.parametrize(
    ("path", "content", "other", "same"),
    [
        ("cpu/online", b"0-3\n", b"0,1,2,3\0", True),
        ("cpu/cpu0/online", b"1\n", b"1", True),
        ("cpu/cpu0/topology/core_cpus", b"00000000,0000000f\n", b"f\n", True),
        ("cpu/cpu0/topology/core_cpus", b"f\n", b"e\n", False),
        ("node/node0/distance", b"10 20\n", b"10  20 \n", True),
        ("proc/meminfo", b"MemTotal: 5 kB\nMemFree: 1 kB\n", b"MemTotal:   5 kB\n", True),
        ("proc/meminfo", b"MemTotal: 5 kB\n", b"MemTotal: 6 kB\n", False),
        (
            "proc/cpuinfo",
            b"processor : 0\ncore id : 1\n",
            b"processor\t: 0\ncore id\t: 1\n\n",
            True,
        ),
    ],
)
def test_files_are_compared_by_content(
    path: str,
    content: bytes,
    other: bytes,
    same: bool,  # noqa: FBT001 - an expectation
) -> None:
    assert (meaning(path, content) == meaning(path, other)) is same
