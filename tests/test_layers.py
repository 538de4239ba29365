"""Allowed imports between modules: the table in ARCHITECTURE.md and the order of packages.

Imports for type checking count, because readers follow them.
"""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from builders import checkout

LAYERS = {
    "protocol": (),
    "workdir": (),
    "reference": ("protocol", "workdir"),
    "fixtures": (),
    "inputs": (),
    "fakesys": ("workdir", "fixtures", "inputs"),
    "formats": ("protocol", "workdir", "reference", "inputs", "fakesys"),
    "conformance": ("protocol", "workdir", "reference", "fixtures", "inputs", "fakesys"),
    "collection": ("protocol", "workdir", "reference", "inputs", "fakesys", "formats"),
    "simulation": ("protocol", "workdir", "reference", "inputs", "fakesys", "formats"),
    "kubelet": ("protocol", "workdir", "reference", "inputs", "fakesys", "formats", "conformance"),
    "campaign": ("protocol", "workdir", "reference", "inputs", "fakesys", "conformance"),
    "reports": ("protocol", "workdir", "inputs"),
}
"""The folders in ARCHITECTURE.md and their allowed imports; `cli` and `plugin` import all."""

ROOMS = (
    "cases",
    "requirements",
    "judging",
    "known_failures",
    "claims",
    "trees",
    "execution",
    "doctor",
    "fuzzing",
    "differential",
    "exhaustion",
    "selection",
    "check",
    "opening",
    "library",
    "promotion",
    "go_tests",
)
"""The packages of `numaproof.conformance` in order: each imports only from earlier ones."""


REFERENCE = (
    ("errors", "golang", "metrics"),
    ("choices",),
    ("pods",),
    ("config",),
    ("capacity",),
    ("topology",),
    ("manager",),
    ("cpu", "memory", "devices"),
    ("checkpoints", "cadvisor", "resize"),
    ("deviations",),
    ("operations",),
    ("node",),
    ("startup",),
    ("implementation",),
    ("server",),
)
"""The layers of `numaproof.reference`, lowest first. Modules in one layer are independent."""


modules = cache(checkout.modules)


@cache
def imports_of(name: str) -> frozenset[str]:
    """Returns the project's modules that a module imports on load or for type checking."""
    statements = list(ast.parse(modules()[name].read_text(encoding="utf-8")).body)
    found: set[str] = set()
    while statements:
        match statements.pop():
            case ast.ImportFrom(module=str(source), names=names):
                whole = {f"{source}.{one.name}" for one in names}
                found |= whole & modules().keys() or {source}
            case ast.Import(names=names):
                found |= {one.name for one in names}
            case ast.If(body=body, orelse=otherwise):
                statements += [*body, *otherwise]
            case ast.ClassDef(body=body) | ast.Try(body=body):
                statements += body
    return frozenset(found & modules().keys()) - {name}


def folder_of(name: str) -> str:
    """Returns the folder of a module, or an empty text for the package itself."""
    return (*name.split("."), "")[1]


def room_of(name: str, folder: str = "conformance") -> str | None:
    """Returns the package of a module within a folder, by default the harness."""
    parts = name.split(".")
    return parts[2] if parts[1:2] == [folder] and len(parts) > 2 else None


@pytest.mark.parametrize("folder", LAYERS)
def test_a_folder_imports_only_from_folders_in_its_row(folder: str) -> None:
    allowed = {folder, *LAYERS[folder]}
    beyond = {
        f"{name} imports {other}"
        for name in modules()
        if folder_of(name) == folder
        for other in imports_of(name)
        if folder_of(other) not in allowed
    }
    assert not beyond


def test_architecture_has_the_same_table() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (checkout.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    table = {row[0].strip("`/"): row[3] for row in rows if row[1].startswith("`numaproof.")}
    said = {"all", "all of the above", "nothing", "nothing of ours"}
    listed = {
        name: tuple(cell.split(", "))
        for name, cell in table.items()
        if cell not in said and name in LAYERS
    }
    assert listed == {name: LAYERS[name] for name in listed}
    assert table.keys() >= LAYERS.keys()


def test_packages_of_the_harness_import_in_one_direction() -> None:
    place = {room: number for number, room in enumerate(ROOMS)}
    assert {room_of(name) for name in modules()} - {None} == place.keys()
    backwards = {
        f"{name} imports {other}"
        for name in modules()
        if (room := room_of(name))
        for other in imports_of(name)
        if (theirs := room_of(other)) and place[theirs] > place[room]
    }
    assert not backwards


def test_the_layers_of_the_reference_import_downward_only() -> None:
    place = {room: number for number, layer in enumerate(REFERENCE) for room in layer}
    assert {room_of(name, "reference") for name in modules()} - {None} == place.keys()
    upward = {
        f"{name} imports {other}"
        for name in modules()
        if (room := room_of(name, "reference"))
        for other in imports_of(name)
        if (theirs := room_of(other, "reference"))
        if room != theirs and place[theirs] >= place[room]
    }
    assert not upward


def test_the_harness_documents_the_order_of_its_packages() -> None:
    text = ast.get_docstring(ast.parse(modules()["numaproof.conformance"].read_text())) or ""
    places = [text.index(f"`{room}`") for room in ROOMS]
    assert places == sorted(places)


def test_no_modules_import_each_other_in_a_cycle() -> None:
    graph = {name: imports_of(name) for name in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
