"""Every list in an answer is ordered, or stands for a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import inspect

from numaproof.protocol import lists
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


def parts(info: inspect.Type) -> Iterator[inspect.Type]:
    """Returns the types directly within a type, except for a structure's fields."""
    match info:
        case inspect.VarTupleType(item_type=one) | inspect.DictType(value_type=one):
            yield one
        case inspect.UnionType(types=types):
            yield from types


def has_list(info: inspect.Type) -> bool:
    """Returns whether a field of this type contains lists, except in nested structures."""
    return isinstance(info, inspect.VarTupleType) or any(map(has_list, parts(info)))


def fields(info: inspect.Type) -> Iterator[tuple[type, str]]:
    """Yields every field with lists in a type, with its structure."""
    if isinstance(info, inspect.StructType):
        for field in info.fields:
            if has_list(field.type):
                yield info.cls, field.name
            yield from fields(field.type)
    for one in parts(info):
        yield from fields(one)


def test_every_list_in_an_answer_is_ordered_or_stands_for_a_set() -> None:
    found = {
        place
        for operation in OPERATIONS.values()
        for answer in (operation.result, *operation.refusals)
        for place in fields(inspect.type_info(answer))
    }
    tables = (lists.SETS, lists.AS_FOUND, lists.ORDERED)
    listed = [(kind, name) for one in tables for kind, names in one.items() for name in names]
    assert sorted(map(str, listed)) == sorted(map(str, found))


def test_numbers_in_a_set_are_sorted() -> None:
    cores = (Core(0, (12, 0, 2)),)
    info = MachineInfo(topology=(Node(10, cores=cores), Node(2)))
    loose, exact = (lists.in_order(info, exact=one) for one in (False, True))
    (core,) = next(one["cores"] for one in loose["topology"] if one["node_id"] == 10)
    assert core["thread_ids"] == [0, 2, 12]
    assert [one["node_id"] for one in exact["topology"]] == [10, 2]
    assert list(exact["topology"][0]["cores"][0]["thread_ids"]) == [12, 0, 2]
