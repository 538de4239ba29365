"""Recordings: made, written, read, and held against implementations."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.targets import target_of
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.recordings import (
    Recorded,
    Recording,
    RecordingError,
    Source,
)
from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    ImplementationFailure,
    InProcess,
)
from numaproof.inputs.errors import DocumentError
from numaproof.protocol import events, messages
from numaproof.protocol.releases import RELEASES
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.execution.run import Target

RECORDED = tuple(release for release in RELEASES if recordings.bundled_file(release).is_file())
SOURCE = Source(1, "mine", "1", "Python", "1.35", "0.1.0", "2026-01-02")


def target(make: Callable[[], Any] = Reference, kubernetes: str = "1.35", **about: Any) -> Target:
    return target_of(InProcess(make), kubernetes=kubernetes, **about)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, ...]:
    """A few recordings of the reference."""
    folder = tmp_path_factory.mktemp("states")
    kept = [recordings.record_seed(target(), seed, folder) for seed in range(30)]
    kept.append(recordings.record_merges(target(), range(10, 15), folder))
    assert list(folder.iterdir()) == []
    return tuple(one for one in kept if one is not None)


def test_a_file_has_its_source_and_every_recording_in_the_same_bytes(
    made: tuple[Recording, ...], tmp_path: Path
) -> None:
    for name in "ab":
        recordings.write(tmp_path / name, SOURCE, made)
    assert recordings.read(tmp_path / "a") == (SOURCE, made)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(made) == 31
    assert [one.seed for one in made[:2]] == [0, 1]
    assert [call.op for call in made[-1].calls] == ["merge"] * 5


def test_what_answered_once_answers_so_again(made: tuple[Recording, ...], tmp_path: Path) -> None:
    for one in made:
        assert recordings.compare(one, target(), tmp_path).outcome == "pass"


class Elsewhere:
    """The reference, which says that every container runs on CPU 0, or breaks, at admissions."""

    def __init__(self, answer: messages.Answer | None = None) -> None:
        self._reference = Reference()
        self._answer = answer

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = self._reference.call(operation, args)
        if isinstance(answer, messages.Admitted):
            if self._answer is not None:
                return self._answer
            return messages.Admitted(
                {
                    name: msgspec.structs.replace(one, cpus=CPUSet([0]))
                    for name, one in answer.containers.items()
                }
            )
        return answer


def with_admission(made: tuple[Recording, ...]) -> Recording:
    return next(one for one in made if any("containers" in str(call.answer) for call in one.calls))


def test_another_answer_is_a_failure_that_shows_what_was_recorded(
    made: tuple[Recording, ...], tmp_path: Path
) -> None:
    one = with_admission(made)
    played = recordings.compare(one, target(Elsewhere), tmp_path)
    assert played.outcome == "fail"
    last = played.steps[-1]
    assert (last.operation, last.expected is None) == ("admit", False)
    assert last.answer == {**one.calls[len(played.steps) - 1].answer["ok"]}


def test_a_fault_of_the_tested_side_is_a_fault(made: tuple[Recording, ...], tmp_path: Path) -> None:
    broken = target(lambda: Elsewhere(messages.Fault("boom")))
    assert recordings.compare(with_admission(made), broken, tmp_path).outcome == "fault"


def test_what_ends_in_a_fault_is_not_kept(tmp_path: Path) -> None:
    broken = target(lambda: Elsewhere(messages.Fault("boom")))
    kept, left_out = [], []
    for seed in range(30):
        try:
            kept.append(recordings.record_seed(broken, seed, tmp_path))
        except ImplementationFailure as failure:
            left_out.append(str(failure))
    assert all(kept)
    assert set(left_out) == {"admit ended in a fault: boom"}


def test_what_is_not_claimed_is_not_kept(tmp_path: Path) -> None:
    assert recordings.record_seed(target(operations=("discover",)), 0, tmp_path) is None


def test_which_of_several_devices_were_taken_is_no_failure_of_a_program(
    made: tuple[Recording, ...], tmp_path: Path
) -> None:
    def names(devices: dict[str, list[str]]) -> None:
        for resource, ids in devices.items():
            devices[resource] = [f"x{one}" for one in ids]

    one = next(one for one in made if any('"vendor' in _text(call) for call in one.calls))
    plain = msgspec.to_builtins(one)
    changed = False
    for call in plain["calls"]:
        for container in call["answer"].get("ok", {}).get("containers", {}).values():
            if any(container.get("devices", {}).values()):
                names(container["devices"])
                changed = True
    assert changed
    other = msgspec.convert(plain, Recording)

    class Program:
        """The reference, in a way that can't be led."""

        def __init__(self) -> None:
            self._reference = Reference()

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            return self._reference.call(operation, args)

        def close(self) -> None:
            pass

    played = recordings.compare(other, target_of(Program()), tmp_path)
    assert (played.outcome, played.chance) == ("pass", "admit")
    assert recordings.compare(other, target(), tmp_path).outcome == "fail"


def admitted(**containers: str) -> dict[str, Any]:
    """An admission: each container with a device and, behind a space, CPUs."""
    return {
        "containers": {
            name: {"cpus": has.partition(" ")[2], "devices": {"gpu": [has.partition(" ")[0]]}}
            for name, has in containers.items()
        }
    }


@pytest.mark.parametrize(
    ("answer", "excused"),
    [
        (admitted(a="d0 1", z="d2 2"), True),
        (admitted(a="d0 1", z="d2 3"), False),
        # The init container z comes first: what a gets may follow from its device.
        (admitted(a="d0 5", z="d2 2"), True),
        (admitted(a="d0 5", z="d1 2"), False),
        (admitted(a="d0 5", z="d2 3"), False),
        (admitted(a="d0 1"), False),
        ({"reason": "TopologyAffinityError", "message": "m"}, False),
    ],
)
def test_what_follows_from_other_devices_of_an_earlier_container_is_no_failure(
    answer: dict[str, Any], *, excused: bool
) -> None:
    pod = {"spec": {"initContainers": [{"name": "z"}], "containers": [{"name": "a"}]}}
    step = events.ReportedCall(
        operation="admit",
        args={"pod": pod},
        answer=answer,
        expected=admitted(a="d0 1", z="d1 2"),
    )
    assert recordings._other_devices(step) is excused


def test_a_resource_with_no_list_of_devices_counts_as_none() -> None:
    answer = {"containers": {"a": {"devices": {"gpu": None}}}}
    step = events.ReportedCall(
        operation="admit",
        args={"pod": {"spec": {"containers": [{"name": "a"}]}}},
        answer=answer,
        expected=admitted(a="d0 1"),
    )
    assert recordings._other_devices(step) is False


def test_an_empty_mapping_of_devices_is_as_good_as_none() -> None:
    pod = {"spec": {"containers": [{"name": "z"}, {"name": "a"}]}}
    answer, expected = admitted(z="d0 1", a="d0 2"), admitted(z="d0 1", a="d1 2")
    del expected["containers"]["z"]["devices"]
    answer["containers"]["z"]["devices"] = {}
    step = events.ReportedCall("admit", {"pod": pod}, answer, expected=expected)
    assert recordings._other_devices(step) is True
    answer["containers"]["a"]["cpus"] = "3"
    assert recordings._other_devices(step) is False


def _text(call: recordings.RecordedCall) -> str:
    devices = [
        container.get("devices")
        for container in call.answer.get("ok", {}).get("containers", {}).values()
    ]
    return msgspec.json.encode([one for one in devices if one and any(one.values())]).decode()


def test_a_recording_answers_what_it_was_made_of_only(made: tuple[Recording, ...]) -> None:
    run = Recorded(made[0])
    with pytest.raises(BrokeProtocol, match="the recording has start here"):
        run.call("state", messages.NoArgs())
    short = Recorded(msgspec.structs.replace(made[0], calls=()))
    with pytest.raises(BrokeProtocol, match="no call"):
        short.call("start", messages.NoArgs())
    short.close()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"plain", "x.jsonl.xz: not an xz file"),
        (lzma.compress(b""), "there is nothing in it"),
        (lzma.compress(b"{}\n"), "x.jsonl.xz, line 1: Object missing required field `format`"),
        (
            lzma.compress(msgspec.json.encode(msgspec.structs.replace(SOURCE, format=2))),
            "format 2 is not known; known is 1",
        ),
        (
            lzma.compress(msgspec.json.encode(msgspec.structs.replace(SOURCE, kubernetes="0,,1"))),
            "x.jsonl.xz, line 1: kubernetes: '0,,1' is not one of 1.30, 1.31,",
        ),
        (
            lzma.compress(msgspec.json.encode(SOURCE) + b'\n{"case": 1}\n'),
            r"line 2: Expected `object`, got `int` - at `\$.case`",
        ),
        (
            lzma.compress(
                msgspec.json.encode(SOURCE)
                + b'\n{"case": {"id": "a", "title": "A", "requirements": [], "steps":'
                b' [{"state": {}}]}, "calls": []}\n'
            ),
            "x.jsonl.xz, line 2: the case has no machine of its own",
        ),
        (
            lzma.compress(
                msgspec.json.encode(SOURCE)
                + b'\n{"case": {"id": "a", "title": "A", "requirements": [], "machine": {},'
                b' "steps": []}, "calls": []}\n'
            ),
            r"x.jsonl.xz, line 2: case.steps: a case needs a step \(give it one, or remove it\)",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_its_line(
    content: bytes, complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.jsonl.xz"
    file.write_bytes(content)
    with pytest.raises((RecordingError, DocumentError), match=complaint):
        recordings.read(file)


@pytest.mark.parametrize("release", RECORDED)
def test_the_bundled_recordings_are_of_the_real_kubelet_and_many(release: str) -> None:
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
def test_the_reference_answers_as_the_real_kubelet_was_recorded_to(
    release: str, tmp_path: Path
) -> None:
    # CI's checks in the oldest and the newest release play the recordings of these.
    wrong = {
        recordings.name_of(one): played.message
        for one in recordings.bundled(release)
        if (played := recordings.compare(one, target(kubernetes=release), tmp_path)).outcome
        != "pass"
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "about", [{"judged_as": "documented"}, {"judged_as": "either"}, {"level": "invariants"}]
)
def test_whoever_is_not_judged_as_a_kubelet_is_held_to_none(about: dict[str, Any]) -> None:
    assert recordings.of_target(target(**about)) == ()


def test_a_release_without_recordings_has_none() -> None:
    assert recordings.bundled("1.12") == ()
