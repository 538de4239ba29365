"""Recordings: created, written, read, and compared with implementations."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.targets import ChangedReference, target_of
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.recordings import (
    Recorded,
    Recording,
    RecordingError,
    Source,
)
from numaproof.conformance.execution.implementation import BrokeProtocol, InProcess
from numaproof.inputs.errors import DocumentError
from numaproof.protocol import events, messages
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import Target

RECORDED = tuple(release for release in RELEASES if recordings.bundled_file(release).is_file())
SOURCE = Source(1, "mine", "1", "Python", "1.35", "0.2.0", "2026-01-02")


def target(kubernetes: str = "1.35", **about: Any) -> Target:
    return target_of(InProcess(Reference), kubernetes=kubernetes, **about)


@pytest.fixture(scope="module")
def reference_recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, ...]:
    """A few recordings of the reference."""
    folder = tmp_path_factory.mktemp("states")
    kept = [recordings.record_seed(target(), seed, folder) for seed in range(30)]
    kept.append(recordings.record_merges(target(), range(10, 15), folder))
    assert list(folder.iterdir()) == []
    return tuple(one for one in kept if one is not None)


def test_a_recording_file_has_its_source_and_is_reproducible(
    reference_recordings: tuple[Recording, ...], tmp_path: Path
) -> None:
    for name in "ab":
        recordings.write(tmp_path / name, SOURCE, reference_recordings)
    assert recordings.read(tmp_path / "a") == (SOURCE, reference_recordings)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(reference_recordings) == 31
    assert [one.seed for one in reference_recordings[:2]] == [0, 1]
    assert [call.op for call in reference_recordings[-1].calls] == ["merge"] * 5


def test_choosing_other_equivalent_devices_is_no_failure(
    reference_recordings: tuple[Recording, ...], tmp_path: Path
) -> None:
    def rename_devices(recording: Recording) -> Recording | None:
        """Returns the recording with renamed devices, or None if no container has any."""
        plain = msgspec.to_builtins(recording)
        answers = (call["answer"].get("ok", {}) for call in plain["calls"])
        held = [
            one.get("devices")
            for answer in answers
            for one in answer.get("containers", {}).values()
        ]
        for devices in filter(None, held):
            devices |= {name: [f"x{one}" for one in ids] for name, ids in devices.items()}
        changed = any(ids for devices in held if devices for ids in devices.values())
        return msgspec.convert(plain, Recording) if changed else None

    other = next(one for one in map(rename_devices, reference_recordings) if one)
    played = recordings.compare(other, target_of(ChangedReference()), tmp_path)
    assert (played.outcome, played.chance) == ("pass", "admit")
    assert recordings.compare(other, target(), tmp_path).outcome == "fail"


def admitted(**containers: str) -> dict[str, Any]:
    """An admission: each container with a device and, after a space, CPUs."""
    return {
        "containers": {
            name: {"cpus": has.partition(" ")[2], "devices": {"gpu": [has.partition(" ")[0]]}}
            for name, has in containers.items()
        }
    }


ORIGINAL = admitted(a="d0 1", z="d1 2")
LEFT_OUT = {"containers": {"a": {"cpus": "1"}, "z": {"cpus": "2", "devices": {"gpu": None}}}}
NONE = {"containers": {"a": {"cpus": "1", "devices": {}}, "z": {"cpus": "2", "devices": {}}}}


@pytest.mark.parametrize(
    ("answer", "expected", "is_excused"),
    [
        (admitted(a="d0 1", z="d2 2"), ORIGINAL, True),
        (admitted(a="d0 1", z="d2 3"), ORIGINAL, False),
        # Init container z comes first, so a's device may follow from z's.
        (admitted(a="d0 5", z="d2 2"), ORIGINAL, True),
        (admitted(a="d0 5", z="d1 2"), ORIGINAL, False),
        (admitted(a="d0 5", z="d2 3"), ORIGINAL, False),
        (admitted(a="d0 1"), ORIGINAL, False),
        ({"reason": "TopologyAffinityError", "message": "m"}, ORIGINAL, False),
        (LEFT_OUT, ORIGINAL, False),
        (LEFT_OUT, NONE, False),
        (NONE, {"containers": {"a": {"cpus": "1"}, "z": {"cpus": "2"}}}, True),
    ],
)
def test_consequences_of_an_earlier_choice_are_no_failure(
    answer: dict[str, Any], expected: dict[str, Any], *, is_excused: bool
) -> None:
    pod = {"spec": {"initContainers": [{"name": "z"}], "containers": [{"name": "a"}]}}
    step = events.ReportedCall("admit", {"pod": pod}, answer, expected=expected)
    assert recordings._other_devices(step) is is_excused


def test_a_recording_only_answers_its_own_calls(
    reference_recordings: tuple[Recording, ...],
) -> None:
    run = Recorded(reference_recordings[0])
    with pytest.raises(BrokeProtocol, match="the recording has start here"):
        run.call("state", messages.NoArgs())
    short = Recorded(msgspec.structs.replace(reference_recordings[0], calls=()))
    with pytest.raises(BrokeProtocol, match="no call"):
        short.call("start", messages.NoArgs())
    short.close()


def pack(case: str = "", **source: Any) -> bytes:
    """Writes a file with a source and, optionally, a recording without calls."""
    head = msgspec.json.encode(msgspec.structs.replace(SOURCE, **source)).decode()
    return lzma.compress(
        "\n".join([head, *([f'{{"case": {case}, "calls": []}}'] * bool(case))]).encode()
    )


CASE = '{"id": "a", "title": "A", "requirements": [], '


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"plain", "x.jsonl.xz: not an xz file"),
        (lzma.compress(b""), "x.jsonl.xz: is empty"),
        (lzma.compress(b"{}\n"), "x.jsonl.xz, line 1: Object missing required field `format`"),
        (pack(format=2), "format: expected 1, got 2"),
        (
            pack(kubernetes="0,,1"),
            "x.jsonl.xz, line 1: kubernetes: expected one of 1.30, 1.31,",
        ),
        (pack("1"), r"line 2: Expected `object`, got `int` - at `\$.case`"),
        (
            pack(CASE + '"steps": [{"state": {}}]}'),
            "x.jsonl.xz, line 2: the case does not define a machine",
        ),
        (
            pack(CASE + '"machine": {}, "steps": []}'),
            r"x.jsonl.xz, line 2: case.steps: a case needs at least one step \(add one,",
        ),
    ],
)
def test_a_malformed_recording_is_refused_with_its_line(
    content: bytes, complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.jsonl.xz"
    file.write_bytes(content)
    with pytest.raises((RecordingError, DocumentError), match=complaint):
        recordings.read(file)


@pytest.mark.parametrize("release", RECORDED)
def test_there_are_many_bundled_recordings_of_the_kubelet(release: str) -> None:
    file = recordings.bundled_file(release)
    source, kept = recordings.read(file)
    assert (source.name, source.kubernetes) == ("kubelet", release)
    assert source.version.startswith(f"{release}.")
    merges = [
        one for one in kept if one.calls[0].op == "merge" and one.case.id.startswith("merges")
    ]
    assert len(kept) - len(merges) >= 300
    assert sum(len(one.calls) for one in merges) >= 500


@pytest.mark.slow
@pytest.mark.parametrize("release", [one for one in RECORDED if one in RELEASES[1:-1]])
def test_the_reference_agrees_with_the_kubelets_recordings(release: str, tmp_path: Path) -> None:
    # CI's checks in the oldest and newest release play these recordings. Here each release plays a
    # third of the others.
    third = slice(RECORDED.index(release) % 3, None, 3)
    wrong = {
        one.case_id: played.message
        for one in recordings.bundled_recordings(release)[third]
        if (played := recordings.compare(one, target(kubernetes=release), tmp_path)).outcome
        != "pass"
    }
    assert wrong == {}


def test_recordings_apply_only_to_kubelets_with_enough_claims(
    tmp_path: Path,
) -> None:
    for about in ({"baseline": "documented"}, {"baseline": "either"}, {"level": "invariants"}):
        assert recordings.of_target(target(**about)) == ()
    assert recordings.bundled_recordings("1.12") == ()
    assert recordings.record_seed(target(operations=("discover",)), 0, tmp_path) is None
