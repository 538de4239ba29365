"""Valid inputs to mutate: small, but with as many fields as possible."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import yaml

from builders.checkout import ROOT
from numaproof import fakesys
from numaproof.campaign import cluster
from numaproof.campaign.campaign import ClusterError
from numaproof.campaign.journal import Journal
from numaproof.campaign.worker import UnitResult
from numaproof.cli.main import cli
from numaproof.protocol import codec, messages
from numaproof.protocol.campaign import CampaignPlanned, ScenarioFailed, SeedSlice, UnitFinished
from numaproof.protocol.operations import OPERATIONS
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOUND = Path(__file__).with_name("sound")
MACHINE = "laptop-4c8t"


@cache
def document(name: str) -> Any:
    """Reads a file in the folder `sound`."""
    return yaml.safe_load((_SOUND / f"{name}.yaml").read_bytes())


@cache
def products() -> list[Any]:
    """Returns files of other products that contain a kubelet's configuration."""
    folder = ROOT / "tests/formats/configurations/inputs"
    return [yaml.safe_load((folder / f"{name}.yaml").read_bytes()) for name in _PRODUCTS]


_PRODUCTS = (
    *("cluster-api-template", "config-map-kubeadm", "eks-node-config", "eksctl", "gardener"),
    *("gke", "k3s", "karpenter-user-data", "kind-cluster", "kops", "kubespray"),
    *("machine-config", "performance-profile", "rancher-cluster", "talos"),
)


@cache
def finding(name: str) -> Any:
    """Returns the first case of a file on its machine, as a file written by fuzzing."""
    text = json.dumps(document(name)["cases"][0])
    # Fuzzing writes no expressions.
    for before, after in (('"${few}"', "2"), ('"${node_id(0)}"', "0"), ("${cpus}", "cpu")):
        text = text.replace(before, after)
    case = json.loads(text)
    case = {key: one for key, one in case.items() if key not in ("machines", "aliases")}
    case["steps"] = [{**one, "expect": "anything"} for one in case["steps"]]
    # A machine in a case has no tree.
    case["steps"][0]["start"].pop("tree", None)
    return {"cases": [{**case, "machine": _machine()}]}


@cache
def profiles() -> list[Any]:
    """Bundled profiles."""
    folder = resources.files("numaproof.fixtures") / "machines"
    names = (MACHINE, "memoryless-node", "arm64-no-core-ids", "dgx-spark-gb10")
    return [yaml.safe_load((folder / f"{name}.yaml").read_bytes()) for name in names]


@cache
def tree(name: str) -> dict[str, Any]:
    """The entries of a bundled machine's tree, by path."""
    return dict(fakesys.build_tree(fakesys.load_profile(name), detail="discovery"))


@cache
def requests() -> tuple[Any, ...]:
    """A request of each operation as sent by the harness, starting with `hello`."""
    args = document("requests")
    config = document("c")
    args["start"] |= {
        "machine": _machine(),
        "config": {key: config[key] for key in config if key not in ("apiVersion", "kind")},
    }
    args["assign"]["machine"] = _machine()
    assert args.keys() == OPERATIONS.keys()
    return tuple({"id": n, "op": op, "args": one} for n, (op, one) in enumerate(args.items()))


@cache
def _machine() -> Any:
    tree_ = fakesys.TreePath.root(fakesys.build_tree(fakesys.load_profile(MACHINE)))
    return json.loads(codec.encode(discover(tree_)))


@cache
def recording() -> list[Any]:
    """The lines of a recording: its source, and the same case twice."""
    source, recorded = document("recording")
    recorded["case"]["machine"] = _machine()
    told = dict(answers())
    calls = [{"op": op, "answer": told[op]} for op in ("start", "state", "admit", "state")]
    for call in calls:
        call["answer"] = {key: one for key, one in call["answer"].items() if key != "id"}
    recorded["calls"] = calls
    return [source, recorded, recorded]


@cache
def answers() -> tuple[tuple[str, Any], ...]:
    """The reference's responses to `requests`, with id 0."""
    reference = Reference()
    found = []

    def ask(op: str, plain: dict[str, Any]) -> None:
        args = codec.from_plain(plain, OPERATIONS[op].args)
        answer: messages.Answer = reference.call(op, args)
        found.append((op, json.loads(codec.encode_answer(0, answer))))

    with tempfile.TemporaryDirectory() as state_dir:
        for request in requests():
            op, plain = request["op"], dict(request["args"])
            ask(op, {**plain, "state_dir": state_dir} if op == "start" else plain)
            if op in ("start", "admit"):
                ask("state", {})
    return tuple(found)


@cache
def checkpoints() -> dict[str, Any]:
    """The checkpoint files of the node in `answers`, as plain values."""
    files = next(one["ok"]["files"] for op, one in reversed(answers()) if op == "state")
    return {name: json.loads(text) for name, text in files.items()}


CAMPAIGN = (
    *("campaign", "--no-cases", "--machine", MACHINE, "--kubernetes", "1.36", "--kubernetes"),
    *("1.37", "--seeds", "0:4", "--seeds-per-unit", "2"),
)
"""The campaign of `journal`. Trials don't run its units, because no workers are started."""


def _command_output(*args: str, output_name: str = "events.jsonl") -> bytes:
    """Returns the file that a command writes; `FOLDER` in an argument is its folder."""
    quiet = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as name, without_workers(), quiet[0], quiet[1]:
        cli.main([one.replace("FOLDER", name) for one in args], standalone_mode=False)
        return (Path(name) / output_name).read_bytes()


@cache
def journal() -> tuple[Any, ...]:
    """The lines of a campaign's file: its plan, two units with a failure, and its end."""
    plan = _command_output(*CAMPAIGN, "--out", "FOLDER").splitlines()[0]
    planned = codec.decode(plan, CampaignPlanned)
    with tempfile.TemporaryDirectory() as name:
        with Journal(Path(name), planned, lambda: 1.0) as opened:
            for first, configuration in enumerate(planned.configurations):
                unit = SeedSlice(configuration, 0, 2).id
                failed = ScenarioFailed(1.0, first, "state: differs", "fail", "one CPU too many")
                ended = UnitFinished(1.0, unit, configuration, {"fail": 1, "pass": 1}, 0.5)
                lines = b"\n".join(codec.encode(one) for one in (failed, ended))
                opened.add(UnitResult(lines, {}))
            opened.end(complete=False, message="interrupted")
        return tuple(map(json.loads, opened.path.read_bytes().splitlines()))


@cache
def events() -> tuple[Any, ...]:
    """The lines of a run with a passed case, a known failure and a crash."""
    way = ("check", "--select", "example-besteffort-runs-shared", "--machine", MACHINE)
    first, passed, last = map(json.loads, _command_output(*way, "--out", "FOLDER").splitlines())
    # As short as possible, but with everything that the site shows.
    first["requirements"] = [one for one in first["requirements"] if one["id"].startswith("CPU-EX")]
    step = {"operation": "state", "args": {}, "answer": {}, "problems": ["one CPU too many"]}
    failed = passed | {"message": "boom", "steps": [step], "signature": "state: differs"}
    known = failed | {"outcome": "known failure", "reason": "own rules: its own CPUs"}
    crash = failed | {"outcome": "crash", "machine": "other"}
    counts = {"pass": 1, "known failure": 1, "crash": 1}
    return first | {"total": 3}, passed, known, crash, last | {"outcomes": counts}


@cache
def board_data() -> Any:
    """The board data of the same run."""
    with tempfile.TemporaryDirectory() as name:
        stream = Path(name) / "events.jsonl"
        stream.write_bytes(b"".join(codec.encode(one) + b"\n" for one in events()))
        way = ("board", name, "--out", "FOLDER/site", "--out-data", "FOLDER/run.json")
        return json.loads(_command_output(*way, output_name="run.json"))


def without_workers() -> Any:
    """Disables workers of campaigns in a ``with`` block, because starting them takes seconds."""

    @contextmanager
    def none(*_: object) -> Iterator[None]:
        message = "a trial has no workers"
        if message:
            raise ClusterError(message)
        yield

    return patch.multiple(cluster, local_workers=none, remote_workers=none)
