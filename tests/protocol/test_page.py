"""docs/protocol.md matches its script, the types and the reference."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = (DOCS / "protocol.md").read_text("utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the page, as a module."""
    spec = importlib.util.spec_from_file_location("protocol_page", DOCS / "protocol" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module.
    sys.modules["protocol_page"] = module
    spec.loader.exec_module(module)
    return module


def section(heading: str) -> str:
    """Returns the text below a third-level heading."""
    return WRITTEN.partition(f"\n### {heading}\n")[2].partition("\n##")[0]


def field_list(text: str) -> dict[str, bool]:
    """Returns the fields in the first list of a text, and whether each is required."""
    rows = re.findall(r"^- `(\w+)` \((.+?)\): ", text.partition("\n\n`")[0], re.MULTILINE)
    return {name: not kind.endswith(", optional") for name, kind in rows}


def fields(kind: type[msgspec.Struct]) -> dict[str, bool]:
    """Returns the fields of a message, and whether each is required."""
    return {one.encode_name: one.required for one in msgspec.structs.fields(kind)}


def test_the_page_matches_its_script(script: Any) -> None:
    assert script.page() == WRITTEN


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_field_of_every_operation_is_on_the_page(name: str) -> None:
    operation, text = OPERATIONS[name], section(name)
    assert field_list(text.partition("`args`:\n\n")[2]) == fields(operation.args)
    if operation.result is not MachineInfo:
        assert field_list(text.partition("`ok`:\n\n")[2]) == fields(operation.result)


def test_every_part_of_a_message_is_on_the_page(script: Any) -> None:
    for kind in script.parts():
        assert field_list(section(kind.__name__)) == fields(kind), kind


def test_a_field_without_a_meaning_is_an_error(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "meanings", lambda: {"Fault": {"message": "what broke"}})
    with pytest.raises(ValueError, match=r"fields\.yaml: Fault"):
        script.fields(messages.Fault)


def test_the_stages_of_a_start_are_described_in_order(script: Any) -> None:
    told = [row.split("`")[1] for row in script.stages().splitlines()]
    order = ("config", "discovery", "topology", "devices", "cpu", "memory")
    assert told == sorted(told, key=order.index)


def test_the_dialogue_has_every_operation(script: Any) -> None:
    assert {one.op for one in script.DIALOGUE} == OPERATIONS.keys()


def test_every_gate_that_changes_the_managers_is_on_the_page() -> None:
    releases = [release(version) for version in RELEASES]
    changing = {name for one in releases for name in (*one.under_gates, *one.without_gates)}
    assert changing
    assert changing <= {*re.findall(r"^\| `(\w+)` \|", section("Feature gates"), re.MULTILINE)}


def test_the_short_hello_is_valid() -> None:
    example = re.search(r"^```json\n(.*?)^```", section("hello"), re.MULTILINE | re.DOTALL)
    assert example is not None
    answer = codec.decode_answer(example[1].replace("\n", "").encode(), 1, "hello")
    assert isinstance(answer, messages.Hello)


def test_the_full_machine_is_valid(script: Any) -> None:
    machine = codec.from_plain(script.MACHINE, MachineInfo)
    assert {
        thread
        for node in machine.topology or ()
        for core in node.cores or ()
        for thread in core.thread_ids or ()
    } == set(range(4))
    # It is complete, so that readers see every field except for caches of NUMA nodes.
    assert codec.to_plain(machine).keys() == script.MACHINE.keys()
