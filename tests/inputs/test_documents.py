from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from numaproof.inputs.documents import HANDWRITTEN, DocumentError, dotted_path, load
from numaproof.inputs.streams import split_documents
from numaproof.inputs.typed import convert


class Leaf(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    colour: str = ""


class Root(msgspec.Struct, forbid_unknown_fields=True):
    leaves: list[Leaf] = []
    by_name: Mapping[str, Leaf] = {}
    either: Leaf | str | None = None


def failure(text: str, type_: type = Root) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        convert(load(text, file="case.yaml"), type_)
    return caught.value


def test_plain_values_keep_the_types_of_json() -> None:
    document = load("a: on\nb: 1:30\nc: 0x10\nd: 012\ne: [true, ~, 1.5, -3]\nf: 2020-01-01\n")
    assert document.data == {
        "a": "on",
        "b": "1:30",
        "c": "0x10",
        "d": "012",
        "e": [True, None, 1.5, -3],
        "f": "2020-01-01",
    }


def test_errors_have_the_line_of_the_key_or_nearest_parent() -> None:
    document = load("a:\n  b:\n    - x\n    - y: 1\n")
    assert document.line() == 1
    assert document.line(("a", "b")) == 2
    assert document.line(("a", "b", 1, "y")) == 4
    assert document.line(("a", "nothing", 7)) == 1
    assert document.line(("a", "b", 99)) == 2
    assert load("").line(("a",)) == 1
    assert load("").data is None


def test_an_unknown_key_names_its_line_and_the_nearest_known_key() -> None:
    error = failure("leaves:\n  - size: 1\n  - size: 2\n    color: red\n")
    assert str(error) == (
        "case.yaml:4: leaves[1].color: unknown key 'color' (did you mean 'colour'?)"
    )
    assert (error.line, error.field) == (4, "leaves[1].color")


def test_an_unknown_key_without_a_similar_one_lists_all() -> None:
    assert failure("zzz: 1\n").fix == "known keys: leaves, by_name, either"


def test_a_missing_key_names_its_parent() -> None:
    error = failure("leaves:\n  - colour: red\n")
    assert str(error) == "case.yaml:2: leaves[0]: missing key 'size' (add 'size')"


def test_a_deeply_nested_wrong_type_names_its_line() -> None:
    error = failure("by_name:\n  one:\n    size: 1\n  two:\n    size: big\n")
    assert (error.line, error.field) == (5, "by_name.two.size")
    assert "expected `int`, got `str`" in error.message


def test_a_wrong_type_in_a_list_of_numbers_names_its_item() -> None:
    error = failure("- 1\n- x\n", list[int])
    assert (error.line, error.field) == (2, "[1]")


def test_a_wrong_type_at_the_top_names_the_first_line() -> None:
    assert failure("- 1\n").line == 1


def test_a_wrong_type_among_alternatives_is_found() -> None:
    assert failure("either:\n  size: x\n").line == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a', first in line 1"),
        ("a: 1\nb: " + "9" * 4301 + "\n", 2, "of 4,301 characters does not fit in 64 bits"),
        ("a: 18446744073709551616\n", 1, "does not fit in 64 bits"),
        ("a: " + "9" * 400 + ".0\n", 1, "does not fit in 64 bits"),
        ("a: &x [1]\nb: *x\n", 2, "aliases are not allowed"),
        ("a: &x\n  - *x\n", 2, "aliases are not allowed"),
        ("a: !!python/name:os.system x\n", 1, "tag .* is not allowed"),
        ("a: !thing x\n", 1, "tag .* is not allowed"),
        ("? [1]\n: 2\n", 1, "keys must be strings"),
        ("a: [1\nb: 2\n", 2, "not YAML"),
        ("a: *missing\n", 1, "aliases"),
        ("a: !!int x\n", 1, "not a number"),
        ("--- 1\n--- 2\n", 2, "not YAML"),
        ("a: 1\nb: \x07\n", 2, "not YAML: control characters"),
        ("a: " + "[" * 60 + "]" * 60, 1, "nested deeper"),
    ],
)
def test_cycles_and_tags_are_refused_with_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(DocumentError, match=message) as caught:
        load(text)
    assert caught.value.line == line


def test_an_alias_bomb_is_refused_immediately() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    with pytest.raises(DocumentError, match="aliases"):
        load("\n".join(rows))


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"not YAML|nested"):
        load("[" * 100_000)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.yaml: cannot read: No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(DocumentError, match=r"latin\.yaml:2: not UTF-8"):
        load(tmp_path / "latin.yaml")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(HANDWRITTEN.size + 1)
    with pytest.raises(DocumentError, match=r"l(arg|ong)er than"):
        load(tmp_path / "large.yaml")
    with pytest.raises(DocumentError, match=r"l(arg|ong)er than"):
        load(" " * (HANDWRITTEN.size + 1))


def test_errors_use_the_files_name(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("a: 1\n")
    document = load(tmp_path / "good.yaml")
    assert (document.file, document.data) == (str(tmp_path / "good.yaml"), {"a": 1})


def test_a_path_is_written_with_dots_and_brackets() -> None:
    assert dotted_path(("nodes", 2, "memory")) == "nodes[2].memory"


def test_aliases_and_merge_keys_can_be_allowed() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {y: 4, <<: [{y: 5, z: 6}, *a]}\nd: [*a]\n"
    assert load(text, aliases=True).data == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 1, "y": 4, "z": 6},
        "d": [{"x": 1, "y": 2}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]",
        "a: &a {b: *a}",
        "a: &a {<<: *a}",
        "\n".join(
            ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
            + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
        ),
    ],
)
def test_recursive_and_exploding_aliases_are_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="too large after expanding aliases"):
        load(text, aliases=True)


def test_only_mappings_can_be_merged() -> None:
    with pytest.raises(DocumentError, match="only mappings can be merged"):
        load("a: {<<: [5]}", aliases=True)


def test_values_are_counted_before_construction() -> None:
    with pytest.raises(DocumentError, match="more than 100,000 values"):
        load("[" + "1," * 300_000)
    with pytest.raises(DocumentError, match="more than 100,000 values"):
        load("[" + "1," * 150_000 + "1]")


def test_long_texts_count_once_per_alias() -> None:
    text = "a: &a " + "x" * 1_000_000 + "\nb: [" + "*a," * 30 + "]\n"
    with pytest.raises(DocumentError, match="too large after expanding aliases"):
        load(text, aliases=True)


def test_lines_are_counted_from_the_start_of_the_file() -> None:
    document = load("a: 1\n", before=9)
    assert (document.line(), document.line(("a",)), load("", before=9).line()) == (10, 10, 10)
    for text in ("a: 1\na: 2\n", "a: 1\n]\n", "a: 1\nb: *x\n", "a: 1\nb: \x07\n"):
        with pytest.raises(DocumentError) as caught:
            load(text, before=9)
        assert caught.value.line == 11


def test_a_tab_in_the_indentation_is_named() -> None:
    with pytest.raises(DocumentError) as caught:
        load("a:\n\tb: 1\n", file="f.yaml")
    assert str(caught.value) == (
        "f.yaml:2: not YAML: a tab in the indentation (indent with spaces)"
    )


@pytest.mark.parametrize("text", ['{"a": 1}\n{"a": 2}\n', '\n{\n "a": 1\n}\n{\n "a": 2}'])
def test_json_objects_that_follow_each_other_are_documents(text: str) -> None:
    first, second = split_documents(text, "f.json")
    assert (first.data, second.data) == ({"a": 1}, {"a": 2})
    assert [one.line(("a",)) for one in (first, second)] == [
        number for number, line in enumerate(text.split("\n"), 1) if '"a"' in line
    ]


def test_braces_in_a_text_do_not_separate_documents() -> None:
    (only,) = split_documents('{"a": "}\n{"}', "f.json")
    assert only.data == {"a": "} {"}


@pytest.mark.parametrize("text", ['{"a": 1}\n{"a": 2', '{"a": 1}\n{b: 2}\n'])
def test_objects_that_are_not_json_do_not_follow_each_other(text: str) -> None:
    with pytest.raises(DocumentError, match="not YAML"):
        list(split_documents(text, "f.json"))
