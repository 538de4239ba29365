from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from numaproof.protocol.releases import RELEASES
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import TABLE
from numaproof.reference.memory.state import MemoryState

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.reference.conftest import Player

NAME = "cpu_manager_state"
OF_ONE_PART = RELEASES[: RELEASES.index("1.37")]
MEMORY = "memory_manager_state"


ROWS = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_bytes())


@pytest.mark.parametrize(
    ("policy", "state", "text"),
    [
        (
            "static",
            CPUState(0xFF),
            '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}',
        ),
        ("none", CPUState(), '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'),
        (
            "static",
            CPUState(0b1010101, {"uid-2": {"app0": 0b100010}}),
            (
                '{"policyName":"static","defaultCpuSet":"0,2,4,6","entries":{"uid-2":{"app0":"1,5"}},'
                '"checksum":936273476}'
            ),
        ),
    ],
)
def test_a_state_is_written_byte_for_byte_and_read_again(
    policy: str, state: CPUState, text: str
) -> None:
    for release in TABLE.values():
        assert cpu_checkpoint.restore(text.encode(), policy, {}, release.cpu_files) == state
    for release in OF_ONE_PART:
        assert cpu_checkpoint.dump(state, policy, TABLE[release].cpu_files).decode() == text


@pytest.mark.parametrize(
    ("entries", "checksum", "pods"),
    [
        ('"entries":null,', 1897607687, {}),
        ('"entries":{},', 14413152, {}),
        ('"entries":{"u":null},', 3077337298, {"u": {}}),
        ('"entries":{"u":{}},', 25906203, {"u": {}}),
        ('"podEntries":{},', 14413152, {}),
    ],
)
def test_null_and_empty_entries_have_checksums_of_their_own(
    entries: str, checksum: int, pods: dict[str, dict[str, int]]
) -> None:
    text = f'{{"policyName":"static","defaultCpuSet":"0-7",{entries}"checksum":{checksum}}}'
    for release in TABLE.values():
        state = cpu_checkpoint.restore(text.encode(), "static", {}, release.cpu_files)
        assert state == CPUState(0xFF, pods)


@pytest.mark.parametrize("release", OF_ONE_PART)
def test_null_entries_have_a_checksum_in_the_first_format_too(release: str) -> None:
    text = b'{"policyName":"static","defaultCpuSet":"0-7","entries":null,"checksum":2371553304}'
    state = cpu_checkpoint.restore(text, "static", {}, TABLE[release].cpu_files)
    assert state == CPUState(0xFF)


@pytest.mark.parametrize(
    ("release", "known"), [("1.33", False), ("1.35", False), ("1.36", True), ("1.37", True)]
)
def test_since_1_36_the_checksum_of_the_new_name_is_taken_too(release: str, known: bool) -> None:  # noqa: FBT001 - a parameter of the test
    text = b'{"policyName":"static","defaultCpuSet":"0-7","checksum":1506833380}'
    try:
        cpu_checkpoint.restore(text, "static", {}, TABLE[release].cpu_files)
    except files.CheckpointError:
        assert not known
    else:
        assert known


def test_names_are_escaped_as_go_does_for_html() -> None:
    assert files.encode({"a<b>&\u2028é": "\b\1"}).decode() == (
        '{"a\\u003cb\\u003e\\u0026\\u2028é":"\\b\\u0001"}'
    )


def broken(reason: str, which: str = "CPU", file: str = NAME) -> str:
    return (
        f"start {which.lower() if which == 'CPU' else which} manager error: could not restore "
        f"state from checkpoint: {reason}, please drain this node and delete the {which} manager "
        f'checkpoint file "$STATE_DIR/{file}" before restarting Kubelet'
    )


@pytest.mark.parametrize("row", ROWS["start"], ids=lambda row: row["says"][-60:])
def test_a_file_that_cannot_be_restored_refuses_the_start_and_stays_as_it_is(
    node: Player, row: dict[str, str]
) -> None:
    path = node.state_dir / NAME
    path.write_text(row["file"])
    assert node.refusal() == ("cpu", broken(row["says"]))
    assert path.read_text() == row["file"]


@pytest.mark.parametrize(
    ("release", "array", "old"),
    [
        ("1.35", "", "error migrating v1 checkpoint state to v2 checkpoint state"),
        ("1.36", "V1", "failed to migrate checkpoint from v1 to v2"),
    ],
)
def test_releases_differ_in_which_format_they_try_last(
    node: Player, release: str, array: str, old: str
) -> None:
    (node.state_dir / NAME).write_text("[]")
    kind = f"state.CPUManagerCheckpoint{array}"
    expected = broken(f"json: cannot unmarshal array into Go value of type {kind}")
    assert node.refusal(release=release) == ("cpu", expected)
    (node.state_dir / NAME).write_text('{"policyName":"static","entries":{"c":"1"}}')
    reason = f"{old}: containerID 'c' not found in initial containers list"
    assert node.refusal(release=release) == ("cpu", broken(reason))


@pytest.mark.parametrize("release", OF_ONE_PART)
def test_a_version_1_file_is_taken_over_for_containers_that_run(
    node: Player, pod: Callable[..., dict[str, Any]], release: str
) -> None:
    text = '{"policyName":"static","defaultCpuSet":"0,2-7","entries":{"u/app0":"1"}}'
    (node.state_dir / NAME).write_text(text)
    assert "ok" in node.start(release=release, pods=[pod("u", "1")])
    assert node.admit(pod("u", "1")) == {"app0": "1"}


@pytest.mark.parametrize(
    ("config", "shared", "entries", "reason"),
    [
        ({}, "", {"u": {"a": "1"}}, "default cpuset cannot be empty"),
        ({}, "1-7", {}, 'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"'),
        (
            {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
            "0-7",
            {},
            'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-7"',
        ),
        (
            {},
            "0-7",
            {"u": {"a": "1"}},
            'pod: u, container: a cpuset: "1" overlaps with default cpuset "0-7"',
        ),
        (
            {},
            "0,2-8",
            {"u": {"a": "1"}},
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
        ),
    ],
)
def test_a_state_that_does_not_fit_the_machine_refuses_the_start(
    node: Player, config: dict[str, Any], shared: str, entries: dict[str, Any], reason: str
) -> None:
    state = {"policyName": "static", "defaultCpuSet": shared, "entries": entries}
    (node.state_dir / NAME).write_text(json.dumps(state))
    assert node.refusal(**config) == ("cpu", f"start cpu manager error: {reason}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "unexpected end of JSON input"),
        ('{"policyName":"None","machineState":{},"checksum":1}', "checkpoint is corrupted"),
        (
            '{"policyName":"Static","machineState":{},"checksum":3557960191}',
            (
                '[memorymanager] configured policy "None" differs from state checkpoint policy '
                '"Static"'
            ),
        ),
    ],
)
def test_a_damaged_memory_state_refuses_the_start_after_the_cpu_manager_has_started(
    node: Player, text: str, reason: str
) -> None:
    written = memory_checkpoint.dump(MemoryState(), "Static", TABLE["1.35"].memory_files)
    text = text.replace("3557960191", str(json.loads(written)["checksum"]))
    (node.state_dir / MEMORY).write_text(text)
    assert node.refusal() == ("memory", broken(reason, "memory", MEMORY))
    assert (node.state_dir / NAME).exists()


def test_a_memory_state_without_checksum_is_taken_by_the_newest_release_alone(node: Player) -> None:
    path = node.state_dir / MEMORY
    path.write_text('{"policyName":"None","machineState":{}}')
    assert node.refusal(release="1.35") == (
        "memory",
        broken("checkpoint is corrupted", "memory", MEMORY),
    )
    assert "ok" in node.start(release="1.36")


def test_an_untouched_file_keeps_its_white_space_until_something_changes(
    node: Player, pod: Callable[..., dict[str, Any]]
) -> None:
    text = ' {"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}\n'
    (node.state_dir / NAME).write_text(text)
    node.start()
    assert node.ask("state")["ok"]["files"][NAME] == text
    node.admit(pod("u", "1"))
    assert not node.ask("state")["ok"]["files"][NAME].startswith(" ")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "state"
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        files.write(target, b"new")
    assert list(tmp_path.iterdir()) == [target]
