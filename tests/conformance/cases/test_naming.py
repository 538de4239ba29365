"""Ids of cases: what a wrong glob may have meant."""

from __future__ import annotations

import pytest

from numaproof.conformance.cases import naming

IDS = ("static-gives-cpus", "static-gives-more", "static-takes-cores", "topo-merge-one", "pool-is")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("statik-*", "; did you mean 'static-*'?"),
        ("topo-merg-*", "; did you mean 'topo-merge-*'?"),
        (
            "static",
            "; did you mean 'static-gives-cpus' or 'static-gives-more' or 'static-takes-cores'?",
        ),
        ("topo-merge-on", "; did you mean 'topo-merge-one'?"),
        ("static-takes", "; did you mean 'static-takes-cores'?"),
        ("*", ""),
        ("nothing-like-it", ""),
    ],
)
def test_what_is_close_is_suggested(pattern: str, meant: str) -> None:
    assert naming.did_you_mean(pattern, IDS) == meant
