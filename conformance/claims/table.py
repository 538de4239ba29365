"""What cases need, in the words of the features that implementations claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.protocol.features import FEATURES

if TYPE_CHECKING:
    from collections.abc import Collection

    from numaproof.protocol.features import Feature


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
