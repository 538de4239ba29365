"""What each verb of a step can expect."""

from __future__ import annotations

EXPECTED_BY_VERB: dict[str, frozenset[str]] = {
    "start": frozenset(
        {"refused", "message", "all", "allocatable", "readmission", "memory", "config"}
    ),
    "admit": frozenset({"refused", "message", "containers", "pod"}),
    "remove": frozenset(),
    "state": frozenset({"shared", "pods", "files", "checkpoints"}),
    "reconcile": frozenset({"updates"}),
    "hints": frozenset({"hints"}),
    "assign": frozenset({"refused", "message", "cpus"}),
    "discover": frozenset({"refused", "message", "machine"}),
    "tamper": frozenset(),
    "devices": frozenset(),
    "merge": frozenset({"hint", "admit"}),
}
"""Which expectations make sense for which verb."""
