"""What is said of a line: everything wrong with it, by name, and never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numaproof.conformance.diagnosis.lines import MOST_MISTAKES, read
from numaproof.protocol import codec, messages
from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.operations import OPERATIONS

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["0-3", "9-1"])
)
NAMES = st.sampled_from(
    ["cpus", "all", "memory", "numa", "containers", "affinity", "name", "level", "pods", "stage"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
GOOD = {
    "start": {"cpus": {"all": "0-3", "allocatable": "1-3"}, "memory": []},
    "state": {
        "shared": "0",
        "pods": {
            "uid": {
                "app": {
                    "cpus": "1",
                    "exclusive": "1",
                    "memory": [{"numa": [0], "type": "memory", "size": 1}],
                    "affinity": {"numa": [0], "preferred": True},
                }
            }
        },
    },
    "hints": {"cpu": {"cpu": [{"numa": [0], "preferred": True}]}, "memory": {"memory": None}},
}


def wrong(body: Any, operation: str = "start", kind: str = "ok") -> list[str]:
    line = json.dumps({"id": 1, kind: body}).encode()
    return [one.wrong for one in read(line, 1, operation).findings]


@pytest.mark.parametrize("operation", GOOD)
def test_a_right_line_has_nothing_wrong_and_its_answer(operation: str) -> None:
    line = json.dumps({"id": 1, "ok": GOOD[operation]}).encode()
    found = read(line, 1, operation)
    assert found.findings == []
    assert found.answer == codec.decode_answer(line, 1, operation)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([*OPERATIONS]), st.sampled_from(["ok", "refused", "fault", "x"]), VALUES)
def test_no_value_is_too_odd_to_be_told_about(operation: str, kind: str, value: Any) -> None:
    line = json.dumps({"id": 1, kind: value}).encode()
    found = read(line, 1, operation)
    try:
        answer = codec.decode_answer(line, 1, operation)
    except codec.ProtocolError:
        assert any(not one.advice for one in found.findings)
    else:
        assert found.findings == []
        assert found.answer == answer


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60))
def test_no_bytes_are_too_odd_to_be_told_about(line: bytes) -> None:
    assert read(line, 1, "state").findings


@pytest.mark.parametrize("value", [[70000], [-1], ["0"], 3.5, {"a": 1}, True])
def test_cpus_of_another_type_are_told_as_such(value: Any) -> None:
    (found,) = wrong({"cpus": {"all": value, "allocatable": "1"}, "memory": []})
    assert found.startswith("`cpus.all` is ")
    assert "it must be a CPU set" in found


def test_every_mistake_of_a_line_is_told() -> None:
    body = {"cpus": {"all": [0], "extra": 1}, "memory": [{"numa": 0, "type": 3, "size": 1.5}]}
    assert [one.partition(" is")[0] for one in wrong(body)] == [
        "`cpus.all`",
        "`cpus.allocatable`",
        "`cpus.extra`",
        "`memory[0].numa`",
        "`memory[0].size`",
        "`memory[0].type`",
    ]


def test_repeated_keys_are_named_next_to_other_mistakes() -> None:
    line = b'{"id": 1, "id": 1, "ok": {"cpus": 1, "memory": [], "memory": [], "memory": []}}'
    first, second, third = (one.wrong for one in read(line, 1, "start").findings)
    assert first == "an object has the key 'memory' more than once"
    assert second == "an object has the key 'id' more than once"
    assert third.startswith("`cpus` is ")


def test_what_was_meant_is_taken_where_that_is_clear() -> None:
    line = b'{"id": "1", "ok": {"cpus": {"all": [1, 0], "allocatable": null}, "memory": null}}'
    found = read(line, 1, "start")
    assert found.is_response
    assert isinstance(found.answer, messages.Started)
    assert (str(found.answer.cpus.all), str(found.answer.cpus.allocatable)) == ("0-1", "")


def test_nothing_is_made_up_where_it_is_not_clear() -> None:
    assert read(b'{"id": 1, "ok": {"cpus": 3, "memory": []}}', 1, "start").answer is None


@pytest.mark.parametrize(
    ("body", "asked", "named"),
    [
        ({"stag": "cpu", "message": "no"}, "start", "`stag` is not a field of the protocol"),
        ({"stage": "cpu", "message": "no"}, "admit", "`reason` is missing"),
        ({"reason": "no", "message": "no"}, "assign", ""),
        ({"stage": "cpu", "message": "no"}, "assign", ""),
        ("no", "admit", "`refused` is a string"),
    ],
)
def test_a_refusal_is_read_as_the_one_that_was_meant(body: Any, asked: str, named: str) -> None:
    found = wrong(body, asked, "refused")
    assert any(named in one for one in found) if named else not found


def test_a_line_nested_too_deeply_is_told() -> None:
    (found,) = read(b'{"id":' + b"[" * 100_000, 1, "state").findings
    assert "the line is not JSON: it is nested too deeply" in found.wrong


@pytest.mark.parametrize("depth", [200, 900, 990, 1000, 5000, 100_000])
def test_nesting_does_no_harm(depth: int) -> None:
    line = b'{"id": 1, "ok": ' + b"[" * depth + b"]" * depth + b"}"
    assert read(line, 1, "state").findings


def test_lone_surrogates_do_no_harm() -> None:
    found = read(rb'{"id": 1, "ok": {"name": "\ud800", "level": "\udfff"}}', 1, "hello")
    assert all(one.wrong.encode() for one in found.findings)


def examples(body: Any, operation: str, kind: str = "ok") -> list[str]:
    line = json.dumps({"id": 1, kind: body}).encode()
    return [one.right for one in read(line, 1, operation).findings]


def test_an_example_fits_the_place_that_it_is_for() -> None:
    assert examples({"memory": []}, "start") == ['`{"cpus": {"all": "0-7", "allocatable": "1-7"}}`']
    assert examples({"kubernetes": [1.37]}, "hello")[0] == '`{"kubernetes": ["1.37"]}`'
    assert '`{"cpu": ["static"]}`' in examples({"policies": {"cpu": "static"}}, "hello")
    assert '`{"a.b": "..."}`' in examples({"shared": "", "pods": {}, "files": {"a.b": []}}, "state")


def test_what_stands_under_a_kind_is_named_by_it() -> None:
    assert wrong([], "state") == [
        "`ok` is a list ([]); it must be an object with `shared`, `pods`",
    ]
    assert wrong(None, "remove") == ["`ok` is null; it must be an object"]


def test_one_type_error_in_several_fields_is_one_finding() -> None:
    container = {"cpus": [1], "exclusive": [1], "memory": [], "affinity": {"numa": None}}
    container["affinity"]["preferred"] = False
    pods = {"uid-a": {"app": container, "side": {**container, "cpus": 7}}}
    assert wrong({"shared": [0], "pods": pods}, "state") == [
        (
            "`pods.uid-a.app.cpus` is a list ([1]); it must be a CPU set: a string in the Linux"
            ' list format, `""` for none; so must `pods.uid-a.app.exclusive`,'
            " `pods.uid-a.side.exclusive`, `shared`"
        ),
        (
            "`pods.uid-a.side.cpus` is a number (7); it must be a CPU set: a string in the Linux"
            ' list format, `""` for none'
        ),
    ]


def test_an_object_that_is_null_is_shown_with_its_fields() -> None:
    container = {"cpus": "", "exclusive": "", "memory": [], "affinity": None}
    line = json.dumps({"id": 1, "ok": {"containers": {"app": container}}}).encode()
    (found,) = read(line, 1, "admit").findings
    assert found.wrong.startswith("`containers.app.affinity` is null; it must be an object with")
    assert found.right == '`{"affinity": {"numa": null, "preferred": false}}`'


def test_nan_is_named_where_it_is() -> None:
    line = b'{"id": 1, "ok": {"cpus": {"all": "", "allocatable": ""}, "memory": [{"numa": [0],'
    found = read(line + b' "type": "memory", "size": NaN}]}}', 1, "start").findings
    assert [one.wrong for one in found] == [
        "the line has NaN, which JSON does not have",
        "`memory[0].size` is a number (NaN); it must be an integer",
    ]


def test_a_result_without_fields_is_an_object_whatever_it_is() -> None:
    found = read(b'{"id": 1, "ok": true}', 1, "remove")
    assert [one.wrong for one in found.findings] == [
        "`ok` is a boolean (true); it must be an object"
    ]
    assert found.answer == messages.Done()


def test_the_nearest_name_is_found_in_any_case() -> None:
    assert examples({"stage": "CPU", "message": ""}, "start", "refused") == ["did you mean `cpu`?"]


def test_no_more_mistakes_are_shown_than_can_be_read() -> None:
    found = wrong(
        {"cpus": {"all": "", "allocatable": ""}, "memory": [], **dict.fromkeys("abcdefghijkl")}
    )
    assert len(found) == MOST_MISTAKES + 1
    assert found[-1] == "... and 2 more mistakes in this line"


def test_a_float_is_not_an_integer() -> None:
    block = {"numa": [0], "type": "memory", "size": 1.0}
    (found,) = wrong({"cpus": {"all": "", "allocatable": ""}, "memory": [block]})
    assert found == "`memory[0].size` is a number (1.0); it must be an integer"


@pytest.mark.parametrize(
    ("cpus", "why"), [("0..7", "'0..7'"), ("7-0", "is reversed"), ("0-9000", "8191")]
)
def test_a_list_in_another_format_is_told_why(cpus: str, why: str) -> None:
    (found,) = wrong({"cpus": {"all": cpus, "allocatable": ""}, "memory": []})
    assert found.startswith(f'`cpus.all` is "{cpus}", not in the Linux list format (')
    assert why in found


def test_one_mistake_in_two_places_is_one_cause() -> None:
    one = Finding("`pods.uid-web.app.cpus` is a list ([1, 2]); it must be a CPU set")
    other = Finding("`containers.app.cpus` is a list ([3]); it must be a CPU set")
    assert one.cause == other.cause
    assert Finding("`id` is 8: another's").cause == Finding("`id` is 28: another's").cause
