"""The expressions in cases; `expressions.yaml` has examples with their values."""

from __future__ import annotations

from typing import Any

import pytest

from builders.tables import Table
from numaproof.conformance.cases.expressions import ExpressionError, cpu_set, evaluate, expand
from numaproof.protocol.sets import CPUSet

EXPRESSIONS = Table(__file__, "expressions.yaml")
NAMES: dict[str, Any] = {
    "smt": 2,
    "all": CPUSet(range(8)),
    "reserved": CPUSet([0]),
    "node": lambda number: (CPUSet(range(4)), CPUSet(range(4, 8)))[number],
    "set": cpu_set,
    "many": [0] * 70_000,
}


@EXPRESSIONS
def test_an_expression_has_a_value_or_a_helpful_error(row: dict[str, Any]) -> None:
    try:
        if "value" in row:
            EXPRESSIONS.check(row, str(expand(row["value"], NAMES)))
            return
        value = evaluate(row["source"], NAMES)
    except ExpressionError as error:
        EXPRESSIONS.check(row, {"error": str(error)})
    else:
        EXPRESSIONS.check(row, str(value))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("smt +", "invalid syntax"),
        ("node(7)", "index out of range"),
        ("smt // 0", "zero"),
        ("smt + all", "unsupported operand"),
        ("9" * 600, "longer than 500 characters"),
        ("(" * 240 + "1" + ")" * 240, "too many nested parentheses|nested too deeply"),
        ("-" * 490 + "1", "nested too deeply|does not fit"),
    ],
)
def test_python_errors_become_expression_errors(source: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(source, NAMES)
