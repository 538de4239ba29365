"""The table of features, with the number of cases that need each.

How many there are is data: to count them is to play every case. A test counts them again.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import msgspec

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
def counts() -> Mapping[str, int]:
    """The number of bundled cases that need each feature."""
    text = resources.files("numaproof.conformance").joinpath("claims", "cases.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=dict[str, int])


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
