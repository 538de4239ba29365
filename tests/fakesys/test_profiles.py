# ruff: noqa: E501 - whole messages stand beside the profiles that cause them
import json
from pathlib import Path

import msgspec
import pytest

from numaproof.fakesys import (
    DocumentError,
    Profile,
    ProfileError,
    build_tree,
    bundled_profiles,
    check_profile,
    dump_profile,
    lay_out,
    load,
    load_profile,
    parse_profile,
    profile_schema,
)

HEAD = "name: m\ntitle: M\nsource: S\narchitecture: x86_64\n"
SMALL = HEAD + "topology: {sockets: 1, cores_per_socket: 2, threads_per_core: 2}\n"
MEMORY = "nodes: [{nodes: 0, memory: 8Gi}]\n"


def profile(text: str) -> Profile:
    return parse_profile(load(text, file="m.yaml"))


def complaint(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        profile(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALL + "nodez: []\n", "m.yaml:6: nodez: unknown key 'nodez' (did you mean 'nodes'?)"),
        (
            SMALL + "nodes:\n  - nodes: 0\n    memory: 8Gi\n    hugepages: {2Mi: many}\n",
            "m.yaml:9: nodes[0].hugepages.2Mi: expected `int`, got `str`",
        ),
        (
            HEAD + "cpus:\n  - {cpus: 0-3, core_id: 0-3}\n  - {cpus: 3-5, core_id: 3-5}\n",
            (
                "m.yaml:7: cpus[1].core_id: CPU 3 is in two cores: cpus[0] also sets `core_id`"
                " (remove it from one)"
            ),
        ),
        (
            HEAD + "cpus:\n  - {cpus: 0-3, socket: 0}\n  - {cpus: 3-5, socket: 1}\n",
            (
                "m.yaml:7: cpus[1].socket: CPU 3 has two values: cpus[0] also sets `socket`"
                " (remove it from one)"
            ),
        ),
        (
            SMALL + "cpus:\n  - {cpus: 4, online: false}\n" + MEMORY,
            "m.yaml:7: cpus[0].cpus: CPU 4 does not exist (the CPUs are 0-3)",
        ),
        (
            HEAD + "cpus: [{cpus: '0,2'}]\nnodes: [{nodes: 0, memory: 1Gi, cpus: 1}]\n",
            "m.yaml:6: nodes[0].cpus: CPU 1 does not exist (the CPUs are 0,2)",
        ),
        (
            HEAD + "cpus: [{cpus: 0-3}]\nnodes:\n  - {nodes: 0-1, memory: 1Gi, cpus: [0-2, 2-3]}\n",
            (
                "m.yaml:7: nodes[0].cpus: CPU 2 is in two nodes, 0 and 1 (remove it from one, or set"
                " `overlapping: true` if the machine reports both)"
            ),
        ),
        (
            SMALL,
            (
                "m.yaml:1: nodes: node 0 has no memory (add a row `- {nodes: 0, memory: 16Gi}`, or"
                " `memory: none`)"
            ),
        ),
        (
            HEAD + "cpus: [{cpus: 0-3}]\n",
            "m.yaml:1: a machine without nodes needs `memory` (add `memory: 8Gi`)",
        ),
        (
            HEAD + "memory: 1Gi\n",
            "m.yaml:1: cpus: the machine has no CPU (add `topology` or `cpus`)",
        ),
        (
            HEAD + "topology: {sockets: 8000, cores_per_socket: 8000}\n",
            "m.yaml:5: topology: 64000000 CPUs exceed Linux's limit of 8192",
        ),
        (
            HEAD + "topology: {sockets: 99999, cores_per_socket: 1}\n",
            "m.yaml:5: topology.sockets: expected `int` <= 8192",
        ),
        (
            HEAD + "topology: {sockets: 1, cores_per_socket: 4, nodes: 3}\n",
            (
                "m.yaml:5: topology.nodes: 4 cores cannot be divided evenly by 3 (use `cpus` and"
                " `nodes` rows for an irregular machine)"
            ),
        ),
        (
            HEAD + "topology: {sockets: 1, cores_per_socket: 4, core_ids: 0-2}\n",
            (
                "m.yaml:5: topology.core_ids: 4 cores cannot share 3 core ids evenly (list the ids"
                " of one die, one node, one socket, or of all cores)"
            ),
        ),
        (
            HEAD + "topology: {sockets: 1, cores_per_socket: 4, nodes: 2, node_ids: 8}\n",
            "m.yaml:5: topology.node_ids: expected 2 node ids, got 1",
        ),
        (
            HEAD + "cpus:\n  - cpus: 0-3\n    socket: 0-1\n",
            "m.yaml:7: cpus[0].socket: 2 values for 4 CPUs (use one for all, or one for each)",
        ),
        (
            HEAD + "cpus:\n  - cpus: 0-99999\n",
            "m.yaml:6: cpus[0].cpus: 99999 is too large; the maximum is 8191",
        ),
        (
            SMALL + MEMORY + "nodes: []\n",
            "m.yaml:7: nodes: duplicate key 'nodes', first in line 6 (remove one of the two)",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: lots}]\n",
            "m.yaml:6: nodes[0].memory: expected a size such as 96Gi, 32Ki or 1048576, got 'lots'",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: 1000}]\n",
            "m.yaml:6: nodes[0].memory: 1000 is not a whole number of KiB",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: 99999999T}]\n",
            "m.yaml:6: nodes[0].memory: '99999999T' does not fit in 63 bits",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: 1Gi}, {nodes: 0, memory: 1Gi}]\n",
            "m.yaml:6: nodes[1].memory: duplicate memory of node 0",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: 1Gi, hugepages: {1Gi: 1, 1024Mi: 1}}]\n",
            "m.yaml:6: nodes[0].hugepages.1024Mi: page size is zero or a duplicate",
        ),
        (
            SMALL + "nodes: [{nodes: 0, memory: 1Gi, cpus: [0, 1]}]\n",
            "m.yaml:6: nodes[0].cpus: got 2 CPU lists, expected 1",
        ),
        (
            SMALL + MEMORY + "distances: ['10 20', '20 10']\n",
            "m.yaml:7: distances: got 2 rows, expected 1",
        ),
        (
            SMALL + MEMORY + "possible: 0-2\n",
            "m.yaml:7: possible: must include all CPUs that are present",
        ),
        (
            SMALL + MEMORY + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: sockets}\n",
            (
                "m.yaml:8: caches[0].shared: unknown scope 'sockets' (use cpu, core,"
                " cluster, die, node, socket, machine, `4 cores`, or lists of CPUs)"
            ),
        ),
        (
            SMALL
            + MEMORY
            + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: [0-1, 1-2]}\n",
            "m.yaml:8: caches[0].shared: CPU 1 is in two caches (remove it from one)",
        ),
        (
            SMALL + MEMORY + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: [0-9]}\n",
            "m.yaml:8: caches[0].shared: CPU 4 does not exist",
        ),
        (
            SMALL
            + MEMORY
            + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: core, cpus: x}\n",
            "m.yaml:8: caches[0].cpus: expected a number or a range such as 0-3, got 'x'",
        ),
        (
            SMALL
            + MEMORY
            + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: core, ids: 0-2}\n",
            "m.yaml:8: caches[0].ids: expected 2 ids, got 3",
        ),
        (
            SMALL
            + MEMORY
            + "caches:\n  - {level: 3, type: Unified, size: 8M, shared: core, ids: x}\n",
            "m.yaml:8: caches[0].ids: cannot parse 'x' in a sequence",
        ),
        (
            SMALL + MEMORY + "caches:\n  - {level: 3, type: Unified, size: big, shared: core}\n",
            "m.yaml:8: caches[0].size: expected a size such as 96Gi, 32Ki or 1048576, got 'big'",
        ),
        (
            SMALL + MEMORY + "cpuinfo: {core_ids: 0-1}\n",
            "m.yaml:7: cpuinfo.core_ids: expected 4 values, got 2",
        ),
        (
            SMALL + MEMORY + "cpuinfo: {core_ids: x}\n",
            "m.yaml:7: cpuinfo.core_ids: cannot parse 'x' in a sequence",
        ),
        (
            SMALL + MEMORY + "cpuinfo: {cpus: x}\n",
            "m.yaml:7: cpuinfo.cpus: expected a number or a range such as 0-3, got 'x'",
        ),
        (
            SMALL + MEMORY + "lacks:\n  - cpu/online\n  - cpu/onlin\n",
            "m.yaml:9: lacks[1]: no file of this machine matches 'cpu/onlin' (remove the line)",
        ),
        (
            SMALL + MEMORY + "lacks: [../etc]\n",
            "m.yaml:7: lacks[0]: '../etc' is outside the tree; start with cpu/ or node/",
        ),
        (
            SMALL + MEMORY + "lacks: [cpu/../x]\n",
            "m.yaml:7: lacks[0]: invalid pattern 'cpu/../x'; use one such as cpu/cpu{0-3}/topology",
        ),
        (
            SMALL + MEMORY + "lacks: ['cpu/***x']\n",
            "m.yaml:7: lacks[0]: 'cpu/***x': more than 2 * in '***x'",
        ),
        (
            SMALL + MEMORY + "lacks: ['cpu/cpu{0-1048575}']\n",
            "m.yaml:7: lacks[0]: 'cpu/cpu{0-1048575}' has 1,048,576 numbers; the limit is 8,192",
        ),
        (
            SMALL + MEMORY + "possible: 0-65535,0-65535\n",
            "m.yaml:7: possible: 65535 is too large; the maximum is 8191",
        ),
        (
            SMALL + MEMORY + "files: {'cpu/x{0-19999}': '" + "x" * 1000 + "'}\n",
            "m.yaml:7: files.cpu/x{0-19999}: 'cpu/x{0-19999}' has 20,000 numbers; the limit is 8,192",
        ),
        (
            SMALL + MEMORY + "files: {'cpu/x{0-8191}': '" + "x" * 3000 + "'}\n",
            "m.yaml:7: files.cpu/x{0-8191}: more than 16,777,216 bytes of files",
        ),
        (
            HEAD + MEMORY + "cpus: [" + "{cpus: 0-8191}," * 33 + "]\n",
            (
                "m.yaml:6: cpus[32].cpus: by this row, rows name more than 262,144 CPUs"
                " (say the same of many CPUs in one row)"
            ),
        ),
        (
            SMALL + MEMORY + "lacks: ['cpu/cpu{a}']\n",
            "m.yaml:7: lacks[0]: 'cpu/cpu{a}': expected a number or a range such as 0-3, got 'a'",
        ),
        (
            SMALL + MEMORY + "files: {cpu/cpu*/online: '1'}\n",
            "m.yaml:7: files.cpu/cpu*/online: 'cpu/cpu*/online': use numbers such as {0-3} instead of *",
        ),
        (
            SMALL + MEMORY + "files: {'cpu/cpu{0-999}/cache/index{0-99}/id': '1'}\n",
            (
                "m.yaml:7: files.cpu/cpu{0-999}/cache/index{0-99}/id: 'cpu/cpu{0-999}/cache/index{0-99}/id'"
                " matches 100000 files; the limit is 20000"
            ),
        ),
        (
            SMALL + MEMORY + "files: {cpu/cpu0/topology: '1'}\n",
            (
                "m.yaml:7: files.cpu/cpu0/topology: sys/devices/system/cpu/cpu0/topology is a directory"
                " or a link"
            ),
        ),
        (
            SMALL + MEMORY + "trailing_nul: [cpu/nothing]\n",
            "m.yaml:7: trailing_nul[0]: no file matches 'cpu/nothing'",
        ),
    ],
)
def test_a_bad_profile_is_refused_with_file_line_field_and_fix(text: str, said: str) -> None:
    assert complaint(text) == said


def test_a_profile_without_lines_is_refused_with_its_field() -> None:
    wrong = msgspec.structs.replace(profile(SMALL + MEMORY), possible="0")
    with pytest.raises(ProfileError, match="possible: must include all CPUs that are present"):
        check_profile(wrong)
    with pytest.raises(ProfileError):
        build_tree(wrong)


def test_an_unknown_name_lists_the_bundled_machines() -> None:
    with pytest.raises(DocumentError, match=r"no such bundled machine .*raspberry-pi-4"):
        load_profile("no-such-machine")


def test_a_profile_is_loaded_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL + MEMORY)
    assert load_profile(path) == load_profile(str(path)) == profile(SMALL + MEMORY)


@pytest.mark.parametrize("name", bundled_profiles())
def test_every_bundled_machine_is_sound_and_survives_being_dumped(name: str) -> None:
    bundled = load_profile(name)
    assert bundled.name == name
    assert bundled.tags
    assert profile(dump_profile(bundled)) == bundled
    assert dump_profile(bundled) == dump_profile(profile(dump_profile(bundled)))


def test_the_bundled_machines_cover_the_shapes_that_matter() -> None:
    tags = {tag for name in bundled_profiles() for tag in load_profile(name).tags}
    assert len(bundled_profiles()) >= 26
    assert tags >= {
        *("x86", "i386", "arm64", "ppc64", "s390x", "smt", "no-smt", "hybrid", "snc"),
        *("memory-only", "memoryless", "offline", "sparse-cpus", "sparse-nodes", "uncore"),
        *("duplicate-core-ids", "no-numa", "no-caches", "no-cache-ids", "no-core-ids"),
        *("package-minus-1", "34-nodes", "12-nodes", "8-nodes", "256-cpus", "hugepages"),
    }


def test_the_schema_knows_every_field_and_no_others() -> None:
    schema = profile_schema()
    definition = schema["$defs"]["Profile"]
    assert set(definition["properties"]) == {f.encode_name for f in msgspec.structs.fields(Profile)}
    assert definition["additionalProperties"] is False
    assert json.loads(json.dumps(schema))["$ref"] == "#/$defs/Profile"


@pytest.mark.parametrize(
    ("numbering", "siblings", "second_socket"),
    [
        ("cores-first", (0, 4), (2, 3, 6, 7)),
        ("siblings-adjacent", (0, 1), (4, 5, 6, 7)),
        ("socket-by-socket", (0, 2), (4, 5, 6, 7)),
        ("sockets-interleaved", (0, 4), (1, 3, 5, 7)),
        ("nodes-interleaved", (0, 4), (1, 3, 5, 7)),
    ],
)
def test_each_numbering_deals_the_cpus_out_in_its_own_order(
    numbering: str, siblings: tuple[int, ...], second_socket: tuple[int, ...]
) -> None:
    machine = lay_out(
        profile(
            HEAD
            + "topology: {sockets: 2, cores_per_socket: 2, threads_per_core: 2, nodes: 2, "
            + f"numbering: {numbering}}}\nnodes: [{{nodes: 0-1, memory: 1Gi}}]\n"
        )
    )
    first = machine.by_number[0].core
    assert tuple(c.number for c in machine.cpus if c.core == first) == siblings
    assert tuple(c.number for c in machine.cpus if c.socket == 1) == second_socket
    assert machine.nodes[1].cpus == second_socket


def test_rows_change_single_cpus_of_a_regular_machine() -> None:
    machine = lay_out(profile(SMALL + "cpus: [{cpus: 3, core_id: 9, online: false}]\n" + MEMORY))
    assert [c.core_id for c in machine.cpus] == [0, 1, 0, 9]
    assert [c.topology for c in machine.cpus] == [True, True, True, False]


def test_nodes_may_overlap_where_the_profile_says_so() -> None:
    rows = "nodes: [{nodes: 0, cpus: 0-1, memory: 1Gi}, {nodes: 1, cpus: 1-2, memory: 1Gi, overlapping: true}]\n"
    machine = lay_out(profile(HEAD + "cpus: [{cpus: 0-2}]\n" + rows))
    assert [node.cpus for node in machine.nodes] == [(0, 1), (1, 2)]


def test_cache_ids_count_on_through_rows_of_one_level() -> None:
    hybrid = lay_out(load_profile("core-i7-1370p"))
    ids = [group.id for kind in hybrid.caches if kind.level == 2 for group in kind.groups]
    assert ids == list(range(len(ids)))
