"""Writes docs/protocol.md: tables of the typed messages, and a dialogue with the reference.

    python docs/protocol/page.py > docs/protocol.md

The prose is in page.txt, the meaning of each field in fields.yaml. A field without a meaning, or a
meaning without a field, is an error.
"""

from __future__ import annotations

import json
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
from numaproof.conformance.claims.names import describe_needs, how_claimed
from numaproof.conformance.execution import truncation
from numaproof.protocol import bounds, codec, lists, messages
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.features import FEATURES
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.sets import CPUSet
from numaproof.reference.server import serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDER = Path(__file__).parent

PLACE = "/var/lib/my-driver"
"""Stands on the page for the state directory."""

_VERSION = "0.1"
_WIDTH = 104


# The tables of fields


@cache
def meanings() -> dict[str, dict[str, str]]:
    """What each field of each message means."""
    found: dict[str, dict[str, str]] = yaml.safe_load(
        (FOLDER / "fields.yaml").read_text(encoding="utf-8")
    )
    return found


def fields(kind: type[msgspec.Struct]) -> str:
    """The table of a message's fields."""
    meant = meanings().get(kind.__name__, {})
    known = msgspec.structs.fields(kind)
    if [one.encode_name for one in known] != [*meant]:
        raise ValueError(f"fields.yaml: {kind.__name__} has {[one.encode_name for one in known]}")
    if not known:
        return "No fields: `{}`."
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    rows = [
        f"| `{one.encode_name}` | {type_text(one.type)}{order_text(kind, one.encode_name)}"
        f" | {'yes' if one.required else 'no'} | {meant[one.encode_name]} |"
        for one in info.fields
    ]
    return "\n".join(["| field | type | required | meaning |", "|---|---|---|---|", *rows])


def order_text(kind: type[msgspec.Struct], name: str) -> str:
    """Whether the order of the lists in a field of an answer counts."""
    tables = {
        ", in any order": lists.SETS,
        ", as found": lists.AS_FOUND,
        ", in order": lists.ORDERED,
    }
    return next((text for text, one in tables.items() if name in one.get(kind, ())), "")


def type_text(info: inspect.Type) -> str:
    """A type in words; a message is a link to its table."""
    text = _WORDS.get(type(info), "")
    match info:
        case inspect.StructType(cls=cls):
            text = f"[{cls.__name__}](#{cls.__name__.lower()})"
        case inspect.CustomType(cls=cls):
            text = f"[{'CPU' if cls is CPUSet else 'NUMA'} set](#cpu-sets-and-numa-sets)"
        case inspect.VarTupleType(item_type=item):
            text = f"list of {type_text(item)}"
        case inspect.DictType(value_type=inspect.AnyType()):
            text = "object"
        case inspect.DictType() if info == _HINTS:
            text = "[hints by resource](#hints-by-resource)"
        case inspect.DictType(value_type=value):
            text = f"object of {type_text(value)}"
        case inspect.UnionType(types=types):
            text = " or ".join(type_text(one) for one in types)
        case inspect.LiteralType(values=values):
            ordered = sorted(values, key=_CHOICES.index)
            text = ", ".join(f"`{value}`" for value in ordered)
    return text


_HINTS = inspect.type_info(messages.ProviderHints)

_CHOICES = (*messages.LEVELS, *get_args(messages.Stage), *messages.TOLD)
"""Where a field is one of several words, they are told in this order."""

_WORDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.TupleType: "list of two integers",
}


def parts() -> tuple[type[msgspec.Struct], ...]:
    """The messages that stand within others, the innermost last."""
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


# What the reference answers


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
"""Two sockets, each a NUMA node with one core of two threads."""

_STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


@dataclass(frozen=True)
class ExampleRequest:
    """A request, and what it shows."""

    about: str
    op: str
    args: dict[str, Any]


def _container(
    name: str, cpu: str, memory: str = "1Gi", *, is_guaranteed: bool = True, **more: str
) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, **more}
    resources = {"requests": amounts, **({"limits": amounts} if is_guaranteed else {})}
    return {"name": name, "image": "app:1", "resources": resources}


def _pod(name: str, *containers: dict[str, Any], init: Sequence[Any] = ()) -> dict[str, Any]:
    spec = {"initContainers": [*init]} if init else {}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {**spec, "containers": [*containers]},
    }


_NIC = "vendor.example/nic"
WEB = _pod("web", _container("app", "1", **{_NIC: "1"}))
LOG = _pod("log", _container("app", "500m", is_guaranteed=False))
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
        "who is there", "hello", {"protocol": [1, 1], "harness": f"numaproof {VERSION}"}
    ),
    ExampleRequest("the first start: an empty state directory, no pods", "start", _start(_CONFIG)),
    ExampleRequest("a Guaranteed pod with a whole CPU and a device", "admit", {"pod": WEB}),
    ExampleRequest("a Burstable pod: it runs on the shared pool", "admit", {"pod": LOG}),
    ExampleRequest(
        "a Guaranteed pod for which there is no room on one node",
        "admit",
        {"pod": _pod("big", _container("app", "2", "64Mi"))},
    ),
    ExampleRequest(
        "an init container, whose CPU the app container then reuses", "admit", {"pod": JOB}
    ),
    ExampleRequest(
        "the hints for a container that isn't on the node",
        "hints",
        {"pod": _pod("next", _container("app", "1")), "container": "app"},
    ),
    ExampleRequest("what the node has assigned", "state", {}),
    ExampleRequest("what the container runtime is told", "reconcile", {}),
    ExampleRequest(
        "a restart, with three pods still on the node", "start", _start(_CONFIG, WEB, LOG, JOB)
    ),
    *(
        ExampleRequest(f"`{pod['metadata']['name']}` is admitted again", "admit", {"pod": pod})
        for pod in (WEB, LOG, JOB)
    ),
    ExampleRequest(
        "the init container has ended", "remove", {"uid": "uid-job", "container": "prepare"}
    ),
    ExampleRequest(
        "a device has become unhealthy", "devices", {"devices": _devices(healthy=False)}
    ),
    ExampleRequest("a pod has left the node", "remove", {"uid": "uid-web"}),
    ExampleRequest("its CPU is back in the shared pool", "state", {}),
    ExampleRequest("a start that is refused", "start", _start({"cpuManagerPolicy": "static"})),
    ExampleRequest("after it there is no node", "state", {}),
    ExampleRequest(
        "the Topology Manager's merge alone",
        "merge",
        {
            "nodes": [0, 1],
            "policy": "restricted",
            "providers": [{"cpu": [_ONE, _TWO, _BOTH]}, {_NIC: [_TWO, _BOTH]}, None],
        },
    ),
    ExampleRequest(
        "CPU assignment alone",
        "assign",
        {"machine": MACHINE, "available": "1-3", "count": 2},
    ),
    ExampleRequest(
        "more CPUs than are available",
        "assign",
        {"machine": MACHINE, "available": "1-3", "count": 4},
    ),
    ExampleRequest("a tree without a machine", "discover", {"root": "/empty"}),
)


def answers(calls: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Requests and the lines with which the reference's server answers them."""
    with tempfile.TemporaryDirectory() as folder:
        requests = [
            json.dumps({"id": number, "op": op, "args": args})
            for number, (op, args) in enumerate(calls, 1)
        ]
        given = "".join(f"{line}\n" for line in requests).replace(PLACE, folder)
        output = BytesIO()
        serve(BytesIO(given.encode()), output)
        lines = output.getvalue().decode().replace(folder, PLACE).splitlines()
    plain = [json.dumps(json.loads(line), ensure_ascii=False) for line in lines]
    return list(zip(requests, plain, strict=True))


def transcript() -> str:
    """The whole dialogue, long lines broken; the machine stands in it once."""
    found = answers((one.op, one.args) for one in DIALOGUE)
    parts: list[str] = []
    for one, (request, response) in zip(DIALOGUE, found, strict=True):
        parts.append(f"# {one.about.replace('`', '')}")
        parts += _wrap("→ ", _short(request))
        parts += [*_wrap("← ", _short(response)), ""]
    return "\n".join(parts).rstrip()


def _short(line: str) -> str:
    """A line without what the page shows elsewhere, or what differs from release to release."""
    short = line.replace(json.dumps(MACHINE), "{...}").replace(f'"{VERSION}"', f'"{_VERSION}"')
    value = json.loads(short.replace("{...}", '"{...}"').replace(VERSION, _VERSION))
    if "fault" in value:
        value["fault"].pop("trace", None)
    for name in value.get("ok", {}).get("files", {}):
        value["ok"]["files"][name] = "..."
    return json.dumps(value, ensure_ascii=False).replace('"{...}"', "{...}")


def _wrap(mark: str, line: str) -> Iterator[str]:
    """A line in pieces that fit the page, broken after commas."""
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
    """Something that is refused: what is wrong, and the start (and pods) that show it."""

    wrong: str
    config: dict[str, Any]
    pods: tuple[dict[str, Any], ...] = ()


STARTS = (
    RefusalExample(
        "malformed values, and what excludes each other", {"topologyManagerPolicy": "strict"}
    ),
    RefusalExample("unknown feature gates", {"featureGates": {"Nope": True}}),
    RefusalExample(
        "CPUs reserved by name that the machine does not have", {"reservedSystemCPUs": "8"}
    ),
    RefusalExample(
        "unknown or malformed Topology Manager options",
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerPolicyOptions": {"prefer": "true"},
        },
    ),
    RefusalExample("an unknown CPU Manager policy", {"cpuManagerPolicy": "statik"}),
    RefusalExample("policy static without a reservation", {"cpuManagerPolicy": "static"}),
    RefusalExample(
        "unknown or malformed CPU Manager options",
        {
            **_STATIC,
            "cpuManagerPolicyOptions": {"full-pcpus-only": "yes"},
        },
    ),
    RefusalExample("an unknown Memory Manager policy", {"memoryManagerPolicy": "static"}),
    RefusalExample(
        "a memory reservation that does not add up",
        {
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        },
    ),
)

_WHOLE_CORES = {**_STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
_TWO_CPUS = _pod("pod", _container("app", "2"))

ADMISSIONS = (
    RefusalExample("too few CPUs are free", _STATIC, (_pod("pod", _container("app", "4")),)),
    RefusalExample(
        "too few devices are healthy and free",
        _STATIC,
        (_pod("pod", _container("app", "1", **{_NIC: "3"})),),
    ),
    RefusalExample(
        "policy `restricted` or `single-numa-node` does not admit the merged hint",
        {**_STATIC, "topologyManagerPolicy": "single-numa-node"},
        (_pod("pod", _container("app", "3")),),
    ),
    RefusalExample(
        "`full-pcpus-only`: the CPUs asked for are no whole cores",
        _WHOLE_CORES,
        (_pod("pod", _container("app", "1")),),
    ),
    RefusalExample(
        "`full-pcpus-only`: too few whole cores are free",
        _WHOLE_CORES,
        (_TWO_CPUS, _pod("next", _container("app", "2"))),
    ),
)


def stages() -> str:
    """The table of what a start refuses."""
    rows = ["| stage | what it refuses | for example |", "|---|---|---|"]
    for one in STARTS:
        ((_, line),) = answers([("start", _start(one.config))])
        refused = json.loads(line)["refused"]
        rows.append(f"| `{refused['stage']}` | {one.wrong} | `{refused['message']}` |")
    return "\n".join(rows)


def reasons() -> str:
    """The table of what an admission refuses."""
    rows = ["| reason | when | for example |", "|---|---|---|"]
    for one in ADMISSIONS:
        asked = [("start", _start(one.config)), *(("admit", {"pod": pod}) for pod in one.pods)]
        refused = json.loads(answers(asked)[-1][1])["refused"]
        rows.append(f"| `{refused['reason']}` | {one.wrong} | `{refused['message']}` |")
    return "\n".join(rows)


def features() -> str:
    """The table of the features that are claimed by name."""
    rows = ["| feature | support | what you do | needs |", "|---|---|---|---|"]
    rows += [
        f"| `{one.name}` | {one.support} | {one.meaning} | {', '.join(describe_needs(one))} |"
        for one in FEATURES.values()
        if one.is_named
    ]
    return "\n".join(rows)


def discovers() -> str:
    """The table of what can be discovered."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in DISCOVERED.items()]
    return "\n".join(["| name | what is found out |", "|---|---|", *rows])


def derived_features() -> str:
    """The table of the features that follow from other claims."""
    rows = ["| feature | support | what you do | claimed by |", "|---|---|---|---|"]
    rows += [
        f"| {one.name} | {one.support} | {one.meaning} | {how_claimed(one)} |"
        for one in FEATURES.values()
        if not one.is_named
    ]
    return "\n".join(rows)


# The page


def page() -> str:
    """The whole page."""
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
        raise ValueError(f"fields.yaml: there is no message {', '.join(unknown)}")
    text = Template((FOLDER / "page.txt").read_text(encoding="utf-8"))
    return text.substitute(
        tables,
        parts="\n\n".join(f"### {one.__name__}\n\n{tables[one.__name__]}" for one in parts()),
        machine=json.dumps(MACHINE, indent=2),
        stages=stages(),
        reasons=reasons(),
        transcript=transcript(),
        features=features(),
        derived=derived_features(),
        discovers=discovers(),
        **limits(),
    )


def limits() -> dict[str, str]:
    """How much an answer can hold."""
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
