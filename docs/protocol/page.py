"""Writes docs/protocol.md: the fields of every message, and a session with the reference.

    python docs/protocol/page.py > docs/protocol.md

The prose is in page.txt, and the meaning of each field is in fields.yaml. It is an error if a field
has no meaning or a meaning has no field.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import yaml
from msgspec import inspect

from numaproof.cli.metadata import VERSION
from numaproof.conformance.claims.names import how_claimed
from numaproof.conformance.execution import truncation
from numaproof.protocol import bounds, codec, lists, messages
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.features import FEATURES
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES
from numaproof.protocol.sets import CPUSet
from numaproof.reference.config import gates
from numaproof.reference.deviations.releases import release
from numaproof.reference.implementation import Reference
from numaproof.reference.server import serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER = Path(__file__).parent

PLACE = "/var/lib/my-driver"
"""The state directory shown on the page."""

_VERSION = "0.1"
_WIDTH = 104


# The fields of messages


@cache
def meanings() -> dict[str, dict[str, str]]:
    """Returns the meaning of each field of each message."""
    found: dict[str, dict[str, str]] = yaml.safe_load(
        (FOLDER / "fields.yaml").read_text(encoding="utf-8")
    )
    return found


def fields(kind: type[msgspec.Struct]) -> str:
    """Returns the list of a message's fields."""
    meant = meanings().get(kind.__name__, {})
    known = msgspec.structs.fields(kind)
    if [one.encode_name for one in known] != [*meant]:
        raise ValueError(f"fields.yaml: {kind.__name__} has {[one.encode_name for one in known]}")
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return "\n".join(
        f"- `{one.encode_name}` ({field_type(kind, one.encode_name, type_text(one.type))}"
        f"{'' if one.required else ', optional'}): {meant[one.encode_name]}"
        for one in info.fields
    )


def field_type(kind: type[msgspec.Struct], name: str, text: str) -> str:
    """Returns the type of a field, and how its lists are compared in an answer."""
    if name in lists.SETS.get(kind, ()):
        return text.replace("list of", "set of")
    return f"{text}, as found" if name in lists.AS_FOUND.get(kind, ()) else text


def type_text(info: inspect.Type) -> str:
    """Returns a type in words; messages are linked to their fields."""
    text = _WORDS.get(type(info), "")
    match info:
        case inspect.StructType(cls=cls):
            text = f"[{cls.__name__}](#{cls.__name__.lower()})"
        case inspect.CustomType(cls=cls):
            text = f"{'CPU' if cls is CPUSet else 'NUMA'} set"
        case inspect.VarTupleType(item_type=item):
            text = f"list of {several(item)}"
        case inspect.DictType(value_type=inspect.AnyType()):
            text = "object"
        case inspect.DictType() if info == _HINTS:
            text = "[Hints](#hints-by-resource)"
        case inspect.DictType(value_type=value):
            text = f"object of {several(value)}"
        case inspect.UnionType(types=types):
            text = " or ".join(type_text(one) for one in types)
        case inspect.LiteralType(values=values):
            in_order = sorted(values, key=_CHOICES.index)
            text = ", ".join(f"`{value}`" for value in in_order)
    return text


def several(info: inspect.Type) -> str:
    """Returns the type of several items in words."""
    return f"{_WORDS[type(info)]}s" if type(info) in _PLURAL else type_text(info)


_HINTS = inspect.type_info(messages.ProviderHints)

_CHOICES = (*messages.LEVELS, *get_args(messages.Stage), *messages.TOLD)
"""The order of the allowed words in a field."""

_WORDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.TupleType: "list of two integers",
}
_PLURAL = {inspect.StrType, inspect.IntType, inspect.BoolType}


def parts() -> tuple[type[msgspec.Struct], ...]:
    """Returns the messages nested in others, innermost last."""
    found: dict[type[msgspec.Struct], None] = {}

    def visit(info: inspect.Type) -> None:
        for one in _within(info):
            if isinstance(one, inspect.StructType):
                found.setdefault(one.cls)
                visit(one)

    for operation in OPERATIONS.values():
        visit(inspect.type_info(operation.args))
        for answer in (operation.result, *operation.refusals):
            visit(inspect.type_info(answer))
    return tuple(found)


def _within(info: inspect.Type) -> Iterator[inspect.Type]:
    match info:
        case inspect.StructType(fields=known):
            for one in known:
                yield from (one.type, *_within_other(one.type))
        case _:
            yield from _within_other(info)


def _within_other(info: inspect.Type) -> Iterator[inspect.Type]:
    match info:
        case inspect.VarTupleType(item_type=one) | inspect.DictType(value_type=one):
            yield from (one, *_within_other(one))
        case inspect.UnionType(types=types):
            for one in types:
                yield from (one, *_within_other(one))


_OF_MANAGERS = re.compile(
    "(CPU|Memory|Topology)Manager|CPUQuota|PodLevelResource|PodVerticalScaling($|Exclusive)"
)
"""Matches the names of feature gates that concern the managers."""

# The reference's answers


MACHINE = {
    "num_cores": 4,
    "num_physical_cores": 2,
    "num_sockets": 2,
    "memory_capacity": 8 << 30,
    "hugepages": [{"page_size": 2048, "num_pages": 0}],
    "topology": [
        {
            "node_id": node,
            "memory": 4 << 30,
            "hugepages": [{"page_size": 2048, "num_pages": 0}],
            "distances": [10, 21] if node == 0 else [21, 10],
            "cores": [
                {
                    "core_id": 0,
                    "thread_ids": [node, node + 2],
                    "socket_id": node,
                    "uncore_caches": [{"id": node, "size": 8 << 20, "type": "Unified", "level": 3}],
                }
            ],
        }
        for node in (0, 1)
    ],
}
"""Two sockets, each a NUMA node with one core with two threads."""

_STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


@dataclass(frozen=True)
class ExampleRequest:
    """A request and its explanation."""

    about: str
    op: str
    args: dict[str, Any]


def _container(name: str, cpu: str, **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {"cpu": cpu, "memory": "1Gi", **more}}}


def _pod(name: str, *containers: dict[str, Any], init: Sequence[Any] = ()) -> dict[str, Any]:
    spec = {"initContainers": [*init]} if init else {}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {**spec, "containers": [*containers]},
    }


_NIC = "vendor.example/nic"
WEB = _pod("web", _container("app", "1", **{_NIC: "1"}))
JOB = _pod("job", _container("app", "1"), init=[_container("prepare", "1")])


def _devices(*, healthy: bool = True) -> list[dict[str, Any]]:
    first = {"id": "d0", "numa": [1], **({} if healthy else {"healthy": False})}
    return [{"resource": _NIC, "ids": [first, {"id": "d1", "numa": None}]}]


def _start(config: dict[str, Any], *pods: dict[str, Any]) -> dict[str, Any]:
    args = {"config": config, "state_dir": PLACE, "kubernetes": "1.37", "machine": MACHINE}
    return {**args, "devices": _devices(), **({"pods": [*pods]} if pods else {})}


_CONFIG = {**_STATIC, "topologyManagerPolicy": "restricted"}
_ONE = {"numa": [0], "preferred": True}
_TWO = {"numa": [1], "preferred": True}
_BOTH = {"numa": [0, 1], "preferred": False}

DIALOGUE = (
    ExampleRequest(
        "the handshake", "hello", {"protocol": [1, 1], "harness": f"numaproof {VERSION}"}
    ),
    ExampleRequest("the first start: an empty state directory, no pods", "start", _start(_CONFIG)),
    ExampleRequest("a Guaranteed pod with a whole CPU and a device", "admit", {"pod": WEB}),
    ExampleRequest(
        "no node has two free CPUs", "admit", {"pod": _pod("big", _container("app", "2"))}
    ),
    ExampleRequest("the app container reuses the init container's CPU", "admit", {"pod": JOB}),
    ExampleRequest(
        "more CPUs for a container that has its own",
        "resize",
        {"pod": _pod("web", _container("app", "2", **{_NIC: "1"}))},
    ),
    ExampleRequest("hints for a container on the node", "hints", {"pod": JOB, "container": "app"}),
    ExampleRequest("updates for the container runtime", "reconcile", {}),
    ExampleRequest("a restart with two pods on the node", "start", _start(_CONFIG, WEB, JOB)),
    *(
        ExampleRequest(f"`{pod['metadata']['name']}` is admitted again", "admit", {"pod": pod})
        for pod in (WEB, JOB)
    ),
    ExampleRequest(
        "the init container has ended", "remove", {"uid": "uid-job", "container": "prepare"}
    ),
    ExampleRequest("a device becomes unhealthy", "devices", {"devices": _devices(healthy=False)}),
    ExampleRequest("everything that is allocated", "state", {}),
    ExampleRequest(
        "the app container has ended by itself", "end", {"uid": "uid-web", "container": "app"}
    ),
    ExampleRequest("a refused start", "start", _start({"cpuManagerPolicy": "static"})),
    ExampleRequest("no node is started", "reconcile", {}),
    ExampleRequest(
        "only the merge",
        "merge",
        {
            "nodes": [0, 1],
            "policy": "restricted",
            "providers": [{_NIC: [_TWO, _BOTH]}, {"cpu": [_ONE, _TWO]}, None],
        },
    ),
    ExampleRequest(
        "only CPU assignment",
        "assign",
        {"machine": MACHINE, "available": "1-3", "count": 2},
    ),
    ExampleRequest("a tree that describes no machine", "discover", {"root": "/empty"}),
    ExampleRequest("the reference has no counters", "coverage", {}),
)


def answers(calls: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Yields requests and the lines with which the reference's server answers them."""
    with tempfile.TemporaryDirectory() as folder:
        requests = [
            json.dumps({"id": number, "op": op, "args": args})
            for number, (op, args) in enumerate(calls, 1)
        ]
        given = "".join(f"{line}\n" for line in requests).replace(PLACE, folder)
        output = BytesIO()
        serve(BytesIO(given.encode()), output, Reference())
        lines = output.getvalue().decode().replace(folder, PLACE).splitlines()
    plain = [json.dumps(json.loads(line), ensure_ascii=False) for line in lines]
    return list(zip(requests, plain, strict=True))


def transcript() -> str:
    """Returns the whole dialogue with long lines wrapped and repetitions shortened."""
    found = answers((one.op, one.args) for one in DIALOGUE)
    parts: list[str] = []
    seen: list[Any] = [MACHINE]
    for one, (request, response) in zip(DIALOGUE, found, strict=True):
        parts.append(f"# {one.about.replace('`', '')}")
        parts += _wrap("→ ", _short(request, seen))
        parts += [*_wrap("← ", _short(response, seen)), ""]
    return "\n".join(parts).rstrip()


def _short(line: str, earlier_values: list[Any]) -> str:
    """Returns a line without repetitions and without parts that differ between releases."""
    value = json.loads(line.replace(VERSION, _VERSION))
    if "fault" in value:
        value["fault"].pop("trace", None)
    result = value.get("ok", {})
    for name in result.get("files", {}):
        result["files"][name] = "..."
    if "harness" not in line and "kubernetes" in result:
        result |= {"operations": "[...]", "features": "[...]"}
    short = json.dumps(_elide(value, earlier_values), ensure_ascii=False, separators=(", ", ":"))
    for mark in ("{...}", "[...]"):
        short = short.replace(f'"{mark}"', mark)
    return short


_ELIDED = {("pod", dict), ("config", dict), ("containers", dict), ("devices", list)}
"""Fields that are shown in full once, with their types."""


def _elide(value: Any, earlier_values: list[Any]) -> Any:
    """Replaces the machine and repetitions with marks."""
    if value in earlier_values:
        return "{...}" if isinstance(value, dict) else "[...]"
    match value:
        case dict():
            kept = {name: _elide(one, earlier_values) for name, one in value.items()}
            earlier_values += [one for name, one in value.items() if (name, type(one)) in _ELIDED]
            return kept
        case list():
            return [_elide(one, earlier_values) for one in value]
        case _:
            return value


def _wrap(mark: str, line: str) -> Iterator[str]:
    """Wraps a line after commas."""
    words = line.split(" ")
    row = mark + words[0]
    for word in words[1:]:
        if len(row) + 1 + len(word) > _WIDTH:
            yield row
            row = "    " + word
        else:
            row += " " + word
    yield row


@dataclass(frozen=True)
class RefusalExample:
    """An example of a refusal: what is wrong, and the start (and pods) that show it."""

    wrong: str
    config: dict[str, Any]
    pods: tuple[dict[str, Any], ...] = ()


STARTS = (
    RefusalExample("malformed or contradictory values", {"topologyManagerPolicy": "strict"}),
    RefusalExample("unknown feature gates", {"featureGates": {"Nope": True}}),
    RefusalExample("`reservedSystemCPUs` that the machine lacks", {"reservedSystemCPUs": "8"}),
    RefusalExample(
        "unknown or malformed Topology Manager options",
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerPolicyOptions": {"prefer": "true"},
        },
    ),
    RefusalExample("an unknown CPU Manager policy", {"cpuManagerPolicy": "statik"}),
    RefusalExample("the `static` policy without reserved CPUs", {"cpuManagerPolicy": "static"}),
    RefusalExample(
        "unknown or malformed CPU Manager options",
        {
            **_STATIC,
            "cpuManagerPolicyOptions": {"full-pcpus-only": "yes"},
        },
    ),
    RefusalExample("an unknown Memory Manager policy", {"memoryManagerPolicy": "static"}),
    RefusalExample(
        "a memory reservation that doesn't add up",
        {
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        },
    ),
)

_WHOLE_CORES = {**_STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
_TWO_CPUS = _pod("pod", _container("app", "2"))

ADMISSIONS = (
    RefusalExample("too few free CPUs", _STATIC, (_pod("pod", _container("app", "4")),)),
    RefusalExample(
        "too few free healthy devices",
        _STATIC,
        (_pod("pod", _container("app", "1", **{_NIC: "3"})),),
    ),
    RefusalExample(
        "`restricted` or `single-numa-node` doesn't admit the merged hint",
        {**_STATIC, "topologyManagerPolicy": "single-numa-node"},
        (_pod("pod", _container("app", "3")),),
    ),
    RefusalExample(
        "`full-pcpus-only`: the request isn't a multiple of a core's CPUs",
        _WHOLE_CORES,
        (_pod("pod", _container("app", "1")),),
    ),
    RefusalExample(
        "`full-pcpus-only`: too few free cores",
        _WHOLE_CORES,
        (_TWO_CPUS, _pod("next", _container("app", "2"))),
    ),
)


def stages() -> str:
    """Returns examples of refused starts, by stage."""
    found: dict[str, list[str]] = {}
    for one in STARTS:
        ((_, line),) = answers([("start", _start(one.config))])
        found.setdefault(json.loads(line)["refused"]["stage"], []).append(one.wrong)
    return _by_name(found)


def reasons() -> str:
    """Returns examples of rejected pods, by reason."""
    found: dict[str, list[str]] = {}
    for one in ADMISSIONS:
        asked = [("start", _start(one.config)), *(("admit", {"pod": pod}) for pod in one.pods)]
        refused = json.loads(answers(asked)[-1][1])["refused"]
        found.setdefault(refused["reason"], []).append(one.wrong)
    return _by_name(found)


def _by_name(names_by_key: dict[str, list[str]]) -> str:
    return "\n".join(f"- `{name}`: {'; '.join(wrong)}" for name, wrong in names_by_key.items())


def features() -> str:
    """Returns the features of version 1 that are claimed by name."""
    return "\n".join(
        f"- `{one.name}` ({one.support}): {one.meaning}"
        for one in FEATURES.values()
        if one.is_named and one.since == "1"
    )


def discovers() -> str:
    """Returns the aspects of discovery that can be claimed."""
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in DISCOVERED.items())


def derived_features() -> str:
    """Returns the features that follow from other claims."""
    return "\n".join(
        f"- {one.name} ({one.support}): {how_claimed(one)}"
        for one in FEATURES.values()
        if not one.is_named
    )


def feature_gates() -> str:
    """Returns the stage and default of each feature gate of the managers, by release."""
    of_releases = [gates.of_release(version) for version in RELEASES]
    names = {name for known in of_releases for name in known if _OF_MANAGERS.search(name)}
    rows = []
    for name in sorted(names):
        needed = {other for known in of_releases if name in known for other in known[name].needs}
        cells = [_stage(known.get(name)) for known in of_releases]
        rows.append([f"`{name}`", *cells, ", ".join(f"`{other}`" for other in sorted(needed))])
    return _table(["gate", *RELEASES, "needs"], rows)


def policy_options() -> str:
    """Returns the stage of each policy option, by release."""
    of_releases = [
        {**found.cpu_options, **found.topology_options} for found in map(release, RELEASES)
    ]
    names = sorted({name for known in of_releases for name in known})
    return _table(
        ["option", *RELEASES],
        [[f"`{name}`", *(known.get(name, ".")[0] for known in of_releases)] for name in names],
    )


def _stage(gate: gates.Gate | None) -> str:
    if gate is None:
        return "."
    letter = gate.maturity[0]
    return (letter.upper() if gate.default else letter) + "!" * gate.is_locked


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def compact(machine: dict[str, Any]) -> str:
    """Returns the machine as JSON, with a line for each node and core."""
    text = json.dumps(machine)
    for name in ("hugepages", "topology", "cores", "uncore_caches"):
        text = text.replace(f' "{name}": [', f'\n "{name}": [')
    return text.replace('[{"node_id"', '[\n {"node_id"').replace(', {"node_id"', ',\n {"node_id"')


# The page


def page() -> str:
    """Returns the whole page."""
    kinds = {
        kind
        for operation in OPERATIONS.values()
        for kind in (operation.args, operation.result, *operation.refusals)
    }
    tables = {
        kind.__name__: fields(kind)
        for kind in (*kinds, messages.Unsupported, messages.Fault, *parts())
    }
    unknown = meanings().keys() - tables.keys()
    if unknown:
        raise ValueError(f"fields.yaml: unknown messages: {', '.join(unknown)}")
    prose = (FOLDER / "page.txt").read_text(encoding="utf-8")
    later = [f"- `{name}`: " for name, one in FEATURES.items() if one.since != "1" and one.is_named]
    if missing := [one for one in later if one not in prose]:
        raise ValueError(f"page.txt: later versions lack {', '.join(missing)}")
    return Template(prose).substitute(
        tables,
        parts="\n\n".join(f"### {one.__name__}\n\n{tables[one.__name__]}" for one in parts()),
        machine=compact(MACHINE),
        stages=stages(),
        reasons=reasons(),
        transcript=transcript(),
        features=features(),
        derived=derived_features(),
        discovers=discovers(),
        gates=feature_gates(),
        options=policy_options(),
        **limits(),
    )


def limits() -> dict[str, str]:
    """Returns the limits on answers."""
    return {
        "answer": f"{codec.LONGEST_ANSWER >> 20}",
        "reason": f"{codec.LONGEST_REASON >> 20}",
        "cpu": f"{codec.MAX_CPUS - 1}",
        "node": f"{codec.MAX_NUMA_ID}",
        "pods": f"{bounds.SPARE_PODS}",
        "containers": f"{bounds.SPARE_CONTAINERS}",
        "files": f"{bounds.MAX_FILES}",
        "file": f"{bounds.FILE_BYTES >> 20}",
        "perpod": f"{bounds.FILE_BYTES_PER_POD >> 10}",
        "shown": f"{truncation.MAX_SHOWN >> 10}",
        "items": f"{truncation.MAX_ITEMS:,}",
    }


def main() -> None:
    """Writes the page to standard output."""
    sys.stdout.write(page())


if __name__ == "__main__":
    main()
