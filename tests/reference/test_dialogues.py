"""Calls to the reference and its answers: each row of `dialogues.yaml` is a dialogue.

A step is an operation with its arguments. Machines are arguments of `conftest.make_machine`, and
their `edits` are values by path. Pods are lists of containers, as resources or numbers of CPUs.
`show` is the path to the relevant part of an answer; `write` writes files into the state
directory.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

from builders import devices, machines, pods
from builders.tables import Table, alike
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player

DIALOGUES = Table(__file__, "dialogues.yaml", compact=True)


@DIALOGUES
def test_the_reference_answers_like_the_kubelet(
    row: dict[str, Any], new_player: Callable[..., Player]
) -> None:
    said = {}
    for release in row.get("releases", ["1.35"]):
        player = new_player(as_documented=row.get("documented", False))
        said[release] = [_play_step(player, release, step) for step in row["steps"]]
    DIALOGUES.check(row, alike(said))


def _play_step(player: Player, release: str, step: dict[str, Any]) -> Any:
    for name, text in step.get("write", {}).items():
        (player.state_dir / name).write_text(text)
    (operation,) = step.keys() - {"write", "show"}
    args = _build_args(step[operation])
    if operation == "start":
        machine = None if "root" in args else _machine({})
        answer: Any = player.start(args.pop("machine", machine), release, **args)
    else:
        defaults = {"machine": _machine({}), "kubernetes": release} if operation == "assign" else {}
        answer = player.ask(operation, **defaults | args)
    answer = json.loads(json.dumps(answer).replace(str(player.state_dir), "$STATE_DIR"))
    for key in step.get("show", "").split("."):
        if isinstance(answer, str) and answer.startswith("{"):
            answer = json.loads(answer)
        answer = answer if not key or key not in answer else answer[key]
    return answer


def _build_args(args: dict[str, Any]) -> dict[str, Any]:
    """Converts arguments to the protocol's form."""
    made = dict(args)
    if "machine" in args:
        made["machine"] = _machine(args["machine"])
    if "pod" in args:
        made["pod"] = _pod(args["pod"])
    if "pods" in args:
        made["pods"] = [_pod(one) for one in args["pods"]]
    if "devices" in args:
        made["devices"] = [
            codec.to_plain(devices.device_resource(**one)) for one in args["devices"]
        ]
    return made


def _machine(shape: dict[str, Any] | None) -> dict[str, Any] | None:
    if shape is None:
        return None
    counts = {name: count for name, count in shape.items() if name != "edits"}
    sizes = {"nodes": 1, "cores": 4, "threads": 2} | counts
    made = machines.plain(machines.regular(**sizes))
    for path, value in shape.get("edits", {}).items():
        *parents, last = (int(key) if key.isdecimal() else key for key in path.split("."))
        reduce(lambda part, key: part[key], parents, made)[last] = value  # type: ignore[index]
    return made


def _pod(rows: dict[str, Any]) -> dict[str, Any]:
    """Returns a `manifest`, or a pod whose `apps` and `init` are resources or Guaranteed CPUs."""
    if "manifest" in rows:
        manifest: dict[str, Any] = rows["manifest"]
        return manifest
    lists = [map(_resources, rows.get(name, ())) for name in ("apps", "init")]
    spec = {"resources": rows["resources"]} if "resources" in rows else {}
    made = pods.numbered_pod(rows.get("uid", "u"), *lists, **spec)
    for name, container in zip(rows.get("names", ()), made["spec"]["containers"], strict=False):
        container["name"] = name
    return made


def _resources(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    made = pods.guaranteed_resources({"cpu": value.rstrip("*"), "memory": "64Mi"})
    return pods.Sidecar(made) if value.endswith("*") else made
