"""The table of feature gates."""

from __future__ import annotations

from numaproof.protocol.releases import RELEASES
from numaproof.reference.config import gates


def test_the_table_has_a_column_for_each_release() -> None:
    assert tuple(gates.table()) == RELEASES


def test_every_gate_that_another_needs_is_known_to_the_same_releases() -> None:
    for known in gates.table().values():
        assert {needed for gate in known.values() for needed in gate.needs} <= known.keys()


def test_gates_for_logging_are_included() -> None:
    for known in gates.table().values():
        assert {"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"} <= known.keys()
