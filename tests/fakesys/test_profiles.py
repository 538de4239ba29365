# ruff: noqa: E501 - whole messages stand beside the profiles that cause them
import json
from pathlib import Path

import msgspec
import pytest
import yaml

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
BAD = [
    ({"HEAD": HEAD, "SMALL": SMALL}[one["after"]] + one.get("profile", ""), one["says"])
    for one in yaml.safe_load(Path(__file__).with_name("bad_profiles.yaml").read_bytes())
]


def profile(text: str) -> Profile:
    return parse_profile(load(text, file="m.yaml"))


def complaint(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        profile(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *BAD,
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
                "m.yaml:6: cpus[32].cpus: the rows up to this one name more than 262,144 CPUs"
                " (describe many CPUs in one row)"
            ),
        ),
    ],
)
def test_a_bad_profile_is_refused_with_file_line_field_and_fix(text: str, message: str) -> None:
    assert complaint(text) == message


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
def test_every_bundled_machine_is_valid_and_round_trips(name: str) -> None:
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
def test_each_numbering_orders_cpus_differently(
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


def test_rows_override_single_cpus() -> None:
    machine = lay_out(profile(SMALL + "cpus: [{cpus: 3, core_id: 9, online: false}]\n" + MEMORY))
    assert [c.core_id for c in machine.cpus] == [0, 1, 0, 9]
    assert [c.topology for c in machine.cpus] == [True, True, True, False]


def test_nodes_may_overlap_if_the_profile_allows_it() -> None:
    rows = "nodes: [{nodes: 0, cpus: 0-1, memory: 1Gi}, {nodes: 1, cpus: 1-2, memory: 1Gi, overlapping: true}]\n"
    machine = lay_out(profile(HEAD + "cpus: [{cpus: 0-2}]\n" + rows))
    assert [node.cpus for node in machine.nodes] == [(0, 1), (1, 2)]


def test_cache_ids_continue_across_rows_of_a_level() -> None:
    hybrid = lay_out(load_profile("core-i7-1370p"))
    ids = [group.ids[0] for kind in hybrid.caches if kind.level == 2 for group in kind.groups]
    assert ids == list(range(len(ids)))
