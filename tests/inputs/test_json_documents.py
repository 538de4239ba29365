"""Listings in JSON are read like YAML, but faster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from numaproof.inputs import documents, json_documents
from numaproof.inputs.documents import LISTING, DocumentError, load

LISTED = {
    "items": [
        {"name": "a", "spec": {"cpu": 1, "list": [1, [2, {"deep": None}]], "empty": {}}},
        {"name": 'quote " and \\ and é', "x": [], "y": -1.5, "z": True, "big": 1 << 40},
    ],
    "kind": "List",
}


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inside: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inside = [*value.items()]
    elif isinstance(value, list):
        inside = [*enumerate(value)]
    return [path, *(one for key, each in inside for one in paths(each, (*path, key)))]


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("before", ["", "\n \n"])
def test_values_and_lines_are_those_of_the_yaml_reader(indent: int | None, before: str) -> None:
    text = before + json.dumps(LISTED, indent=indent)
    fast = load(text, before=3, limits=LISTING)
    slow = load(text, before=3)
    assert type(fast) is not type(slow)
    assert (fast.data, fast.values) == (slow.data, slow.values)
    for path in [*paths(LISTED), ("items", 7), ("items", 0, "missing", "x"), ("kind", "x")]:
        assert fast.locate(path) == slow.locate(path)
    inside = fast.below(("items", 1))
    assert inside.data == LISTED["items"][1]
    assert inside.line(("y",)) == slow.line(("items", 1, "y"))


@pytest.mark.parametrize(
    "text",
    ['{"a": 1e3}', '{"a": 123456789012345678901}', '{"a": NaN}', '{"a": 1, "a": 2}', "{a: 1}"],
)
def test_json_that_yaml_reads_otherwise_is_read_as_yaml(text: str) -> None:
    with pytest.raises(json_documents.UnusualJSONError):
        json_documents.parse(text)
    errors = []
    for limits in (LISTING, documents.HANDWRITTEN):
        try:
            errors.append(load(text, limits=limits).data)
        except DocumentError as error:
            errors.append(str(error))
    assert errors[0] == errors[1]


def test_a_deep_listing_is_an_error() -> None:
    text = "[" * 50 + "]" * 50
    with pytest.raises(DocumentError, match="nested deeper"):
        load(text, limits=LISTING)
    with pytest.raises(DocumentError, match="maximum nesting depth"):
        load("[" * 100_000, limits=LISTING)


def test_more_values_than_people_write_are_read_only_from_listings() -> None:
    text = json.dumps([0] * 150_000)
    assert load(text, limits=LISTING).values == 150_001
    with pytest.raises(DocumentError, match="more than 100,000 values"):
        load(text)


def test_too_many_values_are_an_error_in_a_listing_as_well() -> None:
    with pytest.raises(DocumentError, match="more than 1,000,000 values"):
        load(json.dumps([0] * 1_000_000), limits=LISTING)
