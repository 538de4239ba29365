"""Ids of cases: what a glob selects, and what a wrong one may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.cases import naming

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.cases.schema import Case

IDS = ("static-gives-cpus", "static-gives-more", "static-takes-cores", "topo-merge-one", "pool-is")


def test_a_glob_selects_by_the_id_and_by_earlier_ids(make_case: Callable[[str], Case]) -> None:
    case = make_case("steps: [{state: {}}]")
    case = msgspec.structs.replace(case, id="pool-is", aliases=("shared-is",))
    assert naming.selects("pool-*", case)
    assert naming.selects("shared-is", case)
    assert not naming.selects("static-*", case)


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
