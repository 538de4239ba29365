"""Plays recordings of the real kubelet against the reference, as described in their README."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from builders.checkout import SHARED
from numaproof.protocol.releases import RELEASES
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.deviations import releases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.reference.conftest import Player

RECORDED = tuple(
    release
    for release in RELEASES
    if (SHARED / "kubelet" / f"assignments-{release}.jsonl.gz").exists()
)
"""The recorded releases."""


class Difference(NamedTuple):
    """A call that the reference answers differently."""

    seed: int
    step: int
    operation: str
    expected: Any
    actual: Any


def lines(name: str) -> Iterator[dict[str, Any]]:
    """Reads the JSON lines of a recording."""
    with gzip.open(SHARED / "kubelet" / name) as file:
        for line in file:
            yield json.loads(line)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "truncate": lambda old: old[: len(old) // 2],
    "checksum": lambda old: old.replace(b'"checksum":', b'"checksum":1'),
    "policy": lambda old: old.replace(b"tatic", b"tatik"),
    "field": lambda old: old.replace(b'{"policyName"', b'{"extra":1,"policyName"'),
    "space": lambda old: b" " + old + b"\n",
    "empty": lambda _: b"",
    "garbage": lambda _: b"\x00\x01\x7b",
}
"""The player's changes to state files, by name."""


def tamper(state_dir: Path, args: dict[str, str]) -> None:
    """Makes the player's change to a state file; missing and empty files don't change."""
    path = state_dir / args["file"]
    if args["how"] == "write":
        path.write_text(args["text"])
    elif path.exists() and path.stat().st_size:
        if args["how"] == "delete":
            path.unlink()
        else:
            path.write_bytes(CHANGES[args["how"]](path.read_bytes()))


def play(scenario: dict[str, Any], player: Player) -> tuple[int, list[Difference]]:
    """Plays a scenario; returns the number of calls, and the differing answers."""
    state_dir = player.state_dir
    on_node: dict[str, Any] = {}
    nodes: dict[tuple[str, str], list[int]] = {}
    answered, differences = 0, []
    for number, (step, expected) in enumerate(
        zip(scenario["steps"], scenario["expect"], strict=True)
    ):
        operation, args = step["op"], dict(step["args"])
        if operation == "tamper":
            tamper(state_dir, args)
        if expected is None:
            continue
        if operation == "start":
            args |= {
                "state_dir": str(state_dir),
                "kubernetes": scenario["kubernetes"],
                "pods": [on_node[uid] for uid in args.get("pods", ()) if uid in on_node],
            }
        given = player.ask(operation, **args)
        given = json.loads(json.dumps(given).replace(str(state_dir), "$STATE_DIR"))
        if operation == "start":
            nodes |= {
                (one["resource"], device["id"]): device["numa"] or []
                for one in args.get("devices", ())
                for device in one["ids"]
            }
        recorded = without_chance(expected, {})
        given = without_chance(given, nodes)
        answered += 1
        if not same(given, recorded):
            differences.append(Difference(scenario["seed"], number, operation, recorded, given))
        if operation == "admit":
            uid = args["pod"]["metadata"]["uid"]
            if "ok" in expected:
                on_node[uid] = args["pod"]
            else:
                on_node.pop(uid, None)
        elif operation == "remove" and "container" not in args:
            on_node.pop(args["uid"], None)
    return answered, differences


def without_chance(answer: dict[str, Any], nodes: dict[tuple[str, str], list[int]]) -> Any:
    """Returns the answer without parts that vary between runs of the real kubelet.

    Devices become the sets of their NUMA nodes if `nodes` has them. The blocks of a container
    in
    ``memory_manager_state`` are sorted by type after the checksum is verified. Allocatable
    memory
    is a set, because the kubelet iterates over a map.
    """
    done = answer.get("ok", {})
    if isinstance(done.get("memory"), list):
        done["memory"].sort(key=lambda block: json.dumps(block, sort_keys=True))
    pods = {"": done["containers"]} if "containers" in done else done.get("pods", {})
    for containers in pods.values():
        for container in containers.values():
            for resource, devices in container.get("devices", {}).items():
                devices[:] = sorted(
                    nodes[resource, one] if isinstance(one, str) else one for one in devices
                )
    files = done.get("files", {})
    if files.get("memory_manager_state"):
        files["memory_manager_state"] = memory_content(files["memory_manager_state"])
    return answer


def memory_content(text: str) -> Any:
    """Returns a Memory Manager's file without the order of blocks and the checksum."""
    parsed = json.loads(text)
    policy = parsed["policyName"]
    memory_checkpoint.restore(text.encode(), policy, releases.release(None).memory_files)
    del parsed["checksum"]
    for containers in parsed.get("entries", {}).values():
        for blocks in containers.values():
            blocks.sort(key=lambda block: block["type"])
    return parsed


CHOSEN_BY_CHANCE = (
    # Any of several bad options may be named.
    re.compile(r"new static policy error: .*option"),
    # Any of several resources with too few devices may be named.
    re.compile(r"Allocate failed due to requested number of devices unavailable for "),
)


def same(actual: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Returns whether two answers are equal, except for parts that are random in the kubelet."""
    messages = [one.get("refused", {}).get("message", "") for one in (actual, expected)]
    return actual == expected or any(
        all(form.match(message) for message in messages) for form in CHOSEN_BY_CHANCE
    )


needs_recordings = pytest.mark.skipif(
    not (SHARED / "kubelet").is_dir(),
    reason=f"no recordings of the kubelet in {SHARED / 'kubelet'}; NUMAPROOF_SHARED names another",
)


@needs_recordings
@pytest.mark.parametrize("release", RECORDED)
@pytest.mark.parametrize(("family", "least"), [("cpu-scenarios", 2300), ("scenarios", 1300)])
def test_recorded_scenarios_are_answered_like_the_kubelet(
    family: str, least: int, release: str, new_player: Callable[[], Player]
) -> None:
    calls = 0
    for scenario in lines(f"{family}-{release}.jsonl.gz"):
        answered, differences = play(scenario, new_player())
        assert differences == []
        calls += answered
    assert calls > least


@needs_recordings
@pytest.mark.parametrize(
    ("name", "operation", "count"),
    [
        *((f"assignments-{release}", "assign", 400) for release in RECORDED),
        ("merges-1.35", "merge", 600),
    ],
)
def test_recorded_assignments_and_merges_agree(
    name: str, operation: str, count: int, node: Player
) -> None:
    known = {"kubernetes": name.partition("-")[2]} if operation == "assign" else {}
    recordings = list(lines(f"{name}.jsonl.gz"))
    for recorded in recordings:
        answered = node.ask(operation, **recorded[operation], **known)
        assert answered == recorded["expect"], recorded["seed"]
    assert len(recordings) == count
