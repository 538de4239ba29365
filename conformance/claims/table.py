"""The table of features, and what each case needs.

What a case needs is data, in ``cases.yaml``: only playing it shows it. `written` makes that file
anew.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import yaml

from numaproof.conformance.claims.names import how_claimed
from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.protocol.features import FEATURES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numaproof.protocol.features import Feature, Support


class FeatureRow(NamedTuple):
    """A feature as `numaproof features` lists it; `cases` is how many need it."""

    name: str
    support: Support
    meaning: str
    claimed_by: str
    operations: tuple[str, ...]
    cases: int


def rows() -> tuple[FeatureRow, ...]:
    """Every feature, those claimed by name first."""
    return tuple(
        FeatureRow(
            one.name,
            one.support,
            one.meaning,
            how_claimed(one),
            one.operations,
            counts()[one.name],
        )
        for one in FEATURES.values()
    )


@cache
def needs_of_cases() -> Mapping[str, tuple[str, ...]]:
    """What each bundled case needs, by its id: names of claims."""
    text = resources.files("numaproof.conformance").joinpath("claims", "cases.yaml").read_bytes()
    groups = msgspec.yaml.decode(text, type=tuple[_Group, ...])
    return {case: group.needs for group in groups for case in group.cases}


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases with the same needs."""

    needs: tuple[str, ...]
    cases: tuple[str, ...]


def written(needs: Mapping[str, Collection[str]]) -> str:
    """The text of ``cases.yaml`` for these needs of cases by id."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for case in sorted(needs):
        groups.setdefault(tuple(sorted(needs[case])), []).append(case)
    plain = [{"needs": [*group], "cases": cases} for group, cases in sorted(groups.items())]
    text: str = yaml.safe_dump(plain, sort_keys=False, width=100)
    return text


@cache
def counts() -> Mapping[str, int]:
    """The number of bundled cases that need each feature."""
    found = Counter(name for needs in needs_of_cases().values() for name in needed(needs))
    return {name: found[name] for name in FEATURES}


def needed(needs: Collection[str]) -> tuple[str, ...]:
    """The features that a case needs whose calls need these claims."""
    return tuple(name for name, one in FEATURES.items() if not _claims(one).isdisjoint(needs))


def _claims(feature: Feature) -> frozenset[str]:
    if feature.named:
        return frozenset({f"feature {feature.name}"})
    called = {field.manager: field.called for field in POLICY_FIELDS.values()}
    policies = (
        f"{called[manager]} {policy}" for manager, those in feature.policies for policy in those
    )
    operations = () if feature.policies else feature.operations
    return frozenset((*policies, *(f"operation {one}" for one in operations)))
