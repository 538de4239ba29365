"""Merged documents know the file and line of each value."""

from __future__ import annotations

from numaproof.inputs.documents import MergedDocument, apply_patch, load, parts


def test_a_patch_replaces_adds_and_removes_values() -> None:
    base = load("a: 1\nb: {c: 1, d: 1}\ne: [1]\nf: 1\n", file="base")
    patch = load("a: null\nb:\n  c: 2\n  d: null\ne: [2]\nf: {g: 1, h: null}\n", file="patch")
    found = apply_patch(base, patch)
    assert found.data == {"b": {"c": 2}, "e": [2], "f": {"g": 1}}
    assert found.locate(("b", "c")) == ("patch", 3)
    assert found.locate(("e", 0)) == ("patch", 5)
    assert found.locate(("nothing",)) == ("base", 1)
    assert found.below(("b",)).locate(("c",)) == ("patch", 3)
    assert found.below(()) is found


def test_values_keep_their_files() -> None:
    base, patch = load("\na: 1\nb: 1\n", file="base"), load("b: 2\n", file="patch")
    found = apply_patch(base, patch)
    assert found.data == {"a": 1, "b": 2}
    assert [found.locate((name,)) for name in "ab"] == [("base", 2), ("patch", 1)]
    assert str(found.error(("b",), "wrong")) == "patch:1: b: wrong"


def test_marks_have_a_place_but_no_value() -> None:
    document = load("a: 1\n\nb: 2\n", file="file")
    one, other = parts(document).values()
    merged = MergedDocument(document, {"a": one}, {"--b": other})
    assert merged.data == {"a": 1}
    assert merged.line(("--b",)) == 3


def test_lines_can_be_those_of_another_file() -> None:
    document = load("a: 1\nb: 2\n", file="file").at_lines([7, 9])
    assert [document.line((name,)) for name in "ab"] == [7, 9]
