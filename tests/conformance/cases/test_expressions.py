"""The language in which cases size themselves."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.conformance.cases.expressions import ExpressionError, cpu_set, evaluate, expand
from numaproof.protocol.sets import CPUSet

NAMES: dict[str, Any] = {
    "smt": 2,
    "all": CPUSet(range(8)),
    "reserved": CPUSet([0]),
    "node": lambda number: (CPUSet(range(4)), CPUSet(range(4, 8)))[number],
    "set": cpu_set,
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("smt * 2 + 1", 5),
        ("-smt", -2),
        ("7 // smt % 2", 1),
        ("not smt", False),
        ("1 < smt <= 2", True),
        ("1 < smt < 2", False),
        ("smt == 2 and smt != 3", True),
        ("smt > 2 or smt >= 2", True),
        ("node(1) - set('4-5')", CPUSet([6, 7])),
        ("node(0) & all | reserved", CPUSet(range(4))),
        (" smt ", 2),
    ],
)
def test_arithmetic_comparison_and_sets_have_their_usual_values(source: str, value: object) -> None:
    assert evaluate(source, NAMES) == value


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("smt +", "invalid syntax"),
        ("cores", "'cores' is not known here; there is all, node, reserved, set, smt"),
        ("smt ** 2", "Pow is not part of the language"),
        ("smt is 2", "Is is not part of the language"),
        ("~smt", "Invert is not part of the language"),
        ("[smt]", "'\\[smt\\]' is not part of the language"),
        ("smt.real", "'smt.real' is not part of the language"),
        ("smt(1)", "'smt\\(1\\)' is not a call"),
        ("node(number=1)", "is not a call of the language"),
        ("node(7)", "index out of range"),
        ("1.5", "1.5 is not a number or a text"),
        ("smt // 0", "zero"),
        ("smt + all", "unsupported operand"),
        ("set('3-1')", "is reversed"),
    ],
)
def test_anything_else_is_an_error_that_says_what(source: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(source, NAMES)


def test_a_text_that_is_one_expression_becomes_its_value() -> None:
    assert expand({"count": "${smt}", "cpus": "${all}"}, NAMES) == {"count": 2, "cpus": "0-7"}


def test_expressions_inside_a_text_a_key_or_a_list_are_written_in_place() -> None:
    value = {"hugepages-${smt}Mi": ["${smt}000m", ("${all},9", 3, None)]}
    assert expand(value, NAMES) == {"hugepages-2Mi": ["2000m", ["0-7,9", 3, None]]}


def test_keys_that_are_no_text_stay_as_they_are() -> None:
    assert expand({1: "a"}, NAMES) == {1: "a"}


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("9" * 600, "longer than 500 characters"),
        ("9" * 20, "does not fit in 64 bits"),
        ("*".join(["99999999"] * 3), "does not fit in 64 bits"),
        ("'x' * 2000000000", "only numbers can be multiplied"),
        ("'%2000000000d' % 1", "only numbers can be multiplied"),
        ("(" * 240 + "1" + ")" * 240, "too many nested parentheses|nested too deeply"),
        ("-" * 490 + "1", "nested too deeply|does not fit"),
        ("many", "makes more than 65,536 items"),
    ],
)
def test_a_few_signs_do_not_stand_for_gigabytes(source: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(source, {"many": [0] * 70_000})
