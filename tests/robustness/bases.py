"""Sound inputs, from which mutations begin: small, and with as many of the fields as possible."""

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

from numaproof import fakesys
from numaproof.cli.main import cli
from numaproof.fleet import cluster
from numaproof.fleet.campaign import ClusterError
from numaproof.fleet.journal import Journal
from numaproof.fleet.worker import UnitResult
from numaproof.protocol import codec, messages
from numaproof.protocol.campaign import CampaignPlanned, ScenarioFailed, SeedSlice, UnitFinished
from numaproof.protocol.operations import OPERATIONS
from numaproof.reference.implementation import Reference
from robustness.nodes import Node, made

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINE = "laptop-4c8t"

CASES = """
defaults:
  config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
  machines: {cpus: ">= 4", uniform: true}
  level: invariants
  kubernetes: ">= 1.31"
cases:
- id: own-case
  title: Removing a pod must make room
  aliases: [older-name]
  requirements: [CPU-REMOVE-001]
  level: admission
  machines: {names: ["laptop-*"], where: "cpus > 2 and smt == 2", cores: 4, smt: 2}
  let: {few: smt, left: cpus - 2}
  devices: {vendor.example/nic: "${per_node(1)}", vendor.example/gpu: [[0], null, {numa: [0]}]}
  steps:
  - start: {config: {reservedSystemCPUs: "0"}, gone: [], kubernetes: "1.36", tree: true}
    expect: {allocatable: 7, all: "${all}"}
  - admit: {pod: a, containers: {app: {limits: {cpu: "${few}", memory: 64Mi}}}}
    expect: {containers: {app: {exclusive: {count: 2, within: "0-7", whole_cores: true}}}}
  - admit: {pod: b, spec: {containers: [{name: app, resources: {limits: {cpu: 1}}}]}}
    expect: anything
  - hints: {pod: a, container: app}
    expect: {hints: {cpu: {cpu: [{numa: [0], preferred: true}]}}}
  - devices: {vendor.example/nic: [[0]]}
  - state: {}
    expect:
    - {kubernetes: "< 1.36", anything: true}
    - {kubernetes: ">= 1.36", shared: {at_least: 1, disjoint_from_container: a/app}}
  - remove: {pod: a, container: app}
  - reconcile: {}
    expect: {updates: []}
  - tamper: {file: cpu_manager_state, how: write, checkpoint: {policyName: static,
      defaultCpuSet: "0-7", entries: {uid-a: {app: "1,5"}}}}
  - start: {offline: "7", memory: [{node: 0, bytes: 1073741824}], config: {}}
    expect: anything
- id: merging
  title: A merge
  requirements: [TOPO-MERGE-001]
  machines: {names: ["laptop-4c8t"]}
  config: {}
  steps:
  - merge:
      nodes: [0, 1]
      policy: restricted
      options: {prefer-closest-numa-nodes: "true"}
      distances: {"0": [10, 21], "1": [21, 10]}
      providers:
      - {cpu: [{numa: [0], preferred: true}, {numa: [0, 1], preferred: false}]}
      - null
      - {gpu: null}
      - {nic: []}
    expect: {admit: false}
  - assign: {available: "0-7", count: 2, options: {full-pcpus-only: "true"}}
    expect: {cpus: {equals: "0-1", cores: 1, same_as: a/app}}
  - discover: {}
    expect: {machine: {num_cores: 8, nodes: {"0": {cores: {"0": {cpus: 0-1}}}}}}
"""

EVERY_FIELD = """
cases:
- id: own-case
  title: Every kind of expectation
  requirements: [CPU-STATIC-001, MEM-STATIC-001]
  level: invariants
  machines: {names: ["laptop-4c8t"]}
  tell: [quota, effective-configuration, refused-pods]
  config:
    cpuManagerPolicy: static
    cpuManagerPolicyOptions: {full-pcpus-only: "true"}
    memoryManagerPolicy: Static
    topologyManagerPolicy: restricted
    topologyManagerScope: pod
    topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
    reservedSystemCPUs: "${core(0)}"
    reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]
    kubeReserved: {cpu: "${smt}", memory: 512Mi}
    systemReserved: {memory: 512Mi}
    evictionHard: {memory.available: 100Mi}
    featureGates: {CPUManagerPolicyAlphaOptions: true, CPUManagerPolicyBetaOptions: true}
  devices: {vendor.example/nic: [[0], [0]]}
  preferred: {vendor.example/nic: [d1, d0]}
  steps:
  - start: {config: {cpuManagerPolicyOptions: null}, flags: ["--cpu-manager-policy=static"]}
    expect:
      all: "${all}"
      allocatable: "${all - core(0)}"
      memory: [{numa: [0], size: "${memory(0) - mib(1124)}"}]
      config: {cpuManagerPolicy: static}
  - admit:
      pod: a
      containers:
        app: {requests: {cpu: 2}, limits: {cpu: "2", memory: 64Mi, vendor.example/nic: 1}}
      init: {first: {limits: {cpu: 1, memory: 64Mi}, restartPolicy: Always}}
    expect:
      containers:
        app:
          exclusive: "${core(2)}"
          cpus: {within: "0-7", per_node: [2]}
          affinity: {numa: [0], preferred: true}
          memory: {memory: 67108864}
          devices: {vendor.example/nic: {numa: [[0]]}}
          quota: false
  - admit: {pod: b, containers: {app: {limits: {cpu: 64, memory: 64Mi}}}}
    expect: {refused: TopologyAffinityError, pod: {phase: Failed}}
  - admit:
      pod: c
      containers: {app: {requests: {cpu: 1}}}
      resources: {requests: {cpu: 4}, limits: {cpu: "4", memory: 256Mi}}
  - state: {}
    expect:
      shared: {within: "${all - core(2)}"}
      pods:
        a: {app: {exclusive: 2, memory: [{numa: [0], size: 67108864, type: memory}]}}
        c: {app: {exclusive: 0}}
      files: {cpu_manager_state: {policyName: static}}
  - start: {gone: [a], config: {featureGates: {CPUManagerPolicyAlphaOptions: false}}}
    expect: {readmission: {}}
  - merge: {nodes: ["${node_id(0)}"], policy: none, providers: [{"${cpus}": null}]}
    expect: {admit: true, hint: {numa: [0], preferred: true}}
  - state: {}
    expect: {checkpoints: {cpu_manager_state: {policyName: static, defaultCpuSet: "0"}}}
"""

CONFIGURATION = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-numa: "false"}
cpuManagerReconcilePeriod: 10s
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]
topologyManagerPolicy: best-effort
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
reservedSystemCPUs: "0,4"
kubeReserved: {cpu: 500m, memory: 1Gi}
systemReserved: {cpu: "1", memory: "0"}
evictionHard: {memory.available: 100Mi, nodefs.available: 10%}
evictionSoft: {memory.available: 200Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
enforceNodeAllocatable: [pods]
featureGates: {CPUManagerPolicyAlphaOptions: true}
cpuCFSQuota: true
"""

PODS = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: db, namespace: default, uid: uid-db, creationTimestamp: "2026-01-02T03:04:05Z"}
  spec:
    initContainers:
    - {name: init, restartPolicy: Always, resources: {limits: {cpu: "1", memory: 1Gi}}}
    containers:
    - {name: main, resources: {limits: {cpu: 2, memory: 1Gi, vendor.example/nic: 1}}}
    resources: {limits: {cpu: 4, memory: 3Gi}}
    overhead: {cpu: 10m}
  status: {phase: Running}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: packets, namespace: edge}
  spec:
    replicas: 3
    template:
      metadata: {labels: {a: b}}
      spec:
        containers:
        - {name: app, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}
"""

DEVICES = """
vendor.example/nic: [{id: eth0, numa: [0]}, {id: eth1, numa: [0], healthy: false}]
vendor.example/gpu: [{count: 4, numa: [0]}, {count: 1}]
"""

KNOWN_FAILURES = """
known_failures:
- case: example-*
  machine: laptop-*
  signature: "admit: containers.*.cpus differs"
  reason: the driver fills NUMA nodes from the top
  issue: https://example.com/my-driver/issues/12
  until: "2027-01-31"
- {case: own-case, signature: x, reason: y}
"""


@cache
def document(text: str) -> Node:
    """A YAML text as a tree."""
    return made(yaml.safe_load(text))


@cache
def finding(text: str = CASES) -> Node:
    """The first case of a text alone on its machine, as a file that fuzzing would write."""
    case = yaml.safe_load(text)["cases"][0]
    machine = requests()[1]["args"]["machine"]
    case = {key: one for key, one in case.items() if key not in ("machines", "aliases")}
    values = {"${few}": 2, "${node_id(0)}": 0, "${cpus}": "cpu"}
    steps = _with(case["steps"], values)
    case["steps"] = [{**one, "expect": "anything"} for one in steps]
    # A machine that a case brings has no tree.
    case["steps"][0]["start"].pop("tree", None)
    return made({"cases": [{**case, "machine": machine}]})


def _with(value: Any, values: dict[str, Any]) -> Any:
    """The value with others in the place of some texts: fuzzing writes no expressions."""
    if isinstance(value, dict):
        return {values.get(key, key): _with(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [_with(one, values) for one in value]
    return values.get(value, value) if isinstance(value, str) else value


@cache
def profile(name: str) -> Node:
    """A bundled profile."""
    path = resources.files("numaproof.fixtures") / "machines" / f"{name}.yaml"
    return document(path.read_text(encoding="utf-8"))


@cache
def tree(name: str) -> dict[str, Any]:
    """The entries of a bundled machine's tree, by path."""
    return dict(fakesys.build_tree(fakesys.load_profile(name), detail="discovery"))


def _config() -> dict[str, Any]:
    found = yaml.safe_load(CONFIGURATION)
    return {key: found[key] for key in found if key not in ("apiVersion", "kind")}


def _pod() -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "1Gi"}
    resources_ = {"requests": amounts, "limits": amounts}
    spec = {"containers": [{"name": "app", "resources": resources_}]}
    return {"metadata": {"name": "a", "namespace": "default", "uid": "uid-a"}, "spec": spec}


@cache
def requests() -> tuple[Any, ...]:
    """One request of each operation, as the harness would make it; the first is `hello`."""
    machine = codec.to_plain(_machine())
    devices = [{"resource": "vendor.example/nic", "ids": [{"id": "d0", "numa": [0]}]}]
    hints = {"cpu": [{"numa": [0], "preferred": True}]}
    args: dict[str, Any] = {
        "hello": {"protocol": [1, 1], "harness": "numaproof tests"},
        "start": {
            "machine": machine,
            "config": _config(),
            "state_dir": "state",
            "devices": devices,
            "pods": [],
        },
        "admit": {"pod": _pod()},
        "state": {},
        "hints": {"pod": _pod(), "container": "app"},
        "reconcile": {},
        "devices": {"devices": devices},
        "remove": {"uid": "uid-a"},
        "merge": {"nodes": [0, 1], "policy": "restricted", "providers": [hints, None, {"a": None}]},
        "assign": {"machine": machine, "available": "0-7", "count": 2, "options": {}},
        "discover": {"root": "tree"},
    }
    assert args.keys() == OPERATIONS.keys()
    return tuple({"id": n, "op": op, "args": one} for n, (op, one) in enumerate(args.items()))


def _machine() -> Any:
    from numaproof.reference.cadvisor.discovery import discover  # noqa: PLC0415 - slow to load

    profile_ = fakesys.load_profile(MACHINE)
    return discover(fakesys.TreePath.root(fakesys.build_tree(profile_)))


@cache
def answers() -> tuple[tuple[str, Any], ...]:
    """The operations of `requests` and the reference's answers, as responses with id 0."""
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
"""The campaign of `journal`; its units are not done in a trial, as no workers are started."""


@cache
def journal() -> tuple[Any, ...]:
    """The lines of a campaign's file: its plan, two units with a failure, and its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = _planned(folder)
        with Journal(folder, plan, lambda: 1.0) as opened:
            for first, configuration in enumerate(plan.configurations):
                unit = SeedSlice(configuration, 0, 2).id
                failed = ScenarioFailed(1.0, first, "state: differs", "fail", "one CPU too many")
                ended = UnitFinished(1.0, unit, configuration, {"fail": 1, "pass": 1}, 0.5)
                lines = b"\n".join(codec.encode(one) for one in (failed, ended))
                opened.add(UnitResult(lines, {}))
            opened.end(complete=False, message="interrupted")
        return tuple(map(json.loads, opened.path.read_bytes().splitlines()))


@cache
def events() -> tuple[Any, ...]:
    """The lines of a run with a case that passed, a known failure and a crash."""
    quiet = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    way = ["check", "--select", "example-besteffort-runs-shared", "--machine", MACHINE]
    with tempfile.TemporaryDirectory() as name, quiet[0], quiet[1]:
        cli.main([*way, "--out", name], standalone_mode=False)
        lines = (Path(name) / "events.jsonl").read_bytes().splitlines()
    first, passed, last = map(json.loads, lines)
    # As short as it may be, but for what the site shows of it.
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
        data = Path(name) / "run.json"
        with redirect_stdout(io.StringIO()):
            way = ["board", name, "--out", f"{name}/site", "--data", str(data)]
            cli.main(way, standalone_mode=False)
        return json.loads(data.read_bytes())


def _planned(folder: Path) -> CampaignPlanned:
    """The plan of `CAMPAIGN`, as the command writes it."""
    quiet = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with without_workers(), quiet[0], quiet[1]:
        cli.main([*CAMPAIGN, "--out", str(folder)], standalone_mode=False)
    file = folder / "events.jsonl"
    plan = file.read_bytes().splitlines()[0]
    file.unlink()
    return codec.decode(plan, CampaignPlanned)


def without_workers() -> Any:
    """Lets campaigns find no workers, until the end of a ``with``: to start them takes seconds."""

    @contextmanager
    def none(*_: object) -> Iterator[None]:
        message = "a trial has no workers"
        if message:
            raise ClusterError(message)
        yield

    return patch.multiple(cluster, local_workers=none, remote_workers=none)
