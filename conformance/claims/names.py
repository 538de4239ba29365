"""Whether the claims in ``hello`` are known and consistent, and the features that they imply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.features import CHECKPOINT_FILES, FEATURES, Feature
from numaproof.protocol.names import unknown
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numaproof.protocol.messages import Hello


_CALLED = {field.manager: field.label for field in POLICY_FIELDS.values()}
_RELEASE = re.compile(r"\d+\.\d+\Z")


def problems(hello: Hello) -> Iterator[str]:
    """The problems with the claims in a ``hello``, as phrases.

    Options of any release, and any string in the form of a release, are valid.
    """
    for one in hello.kubernetes:
        if not _RELEASE.match(one):
            yield f"expected a minor release such as {RELEASES[-1]!r}, got {one!r}"
    yield from _unknown("operation", hello.operations, OPERATIONS)
    for field in POLICY_FIELDS.values():
        yield from _unknown(field.label, getattr(hello.policies, field.manager), field.policies)
    of_cpu, of_topology = (
        {name: None for one in RELEASES for name in getattr(release(one), options)}
        for options in ("cpu_options", "topology_options")
    )
    yield from _unknown("CPU Manager option", hello.options.cpu, of_cpu)
    yield from _unknown("Topology Manager option", hello.options.topology, of_topology)
    yield from _of_features(hello)
    yield from _of_discovery(hello)


def _of_features(hello: Hello) -> Iterator[str]:
    if hello.features is None:
        return
    yield from _unknown("feature", hello.features, FEATURES)
    for feature in (FEATURES[one] for one in hello.features if one in FEATURES):
        if not feature.is_named:
            yield f"feature {feature.name!r} must be claimed by {how_claimed(feature)}, not by name"
        elif not feature.is_allowed(hello):
            yield f"feature {feature.name!r} needs {', '.join(describe_needs(feature))}"
    if hello.level == "kubelet" and CHECKPOINT_FILES not in hello.features:
        yield (f"level 'kubelet' needs feature {CHECKPOINT_FILES!r} (or claim level 'placement')")


def _of_discovery(hello: Hello) -> Iterator[str]:
    if hello.discovers is None:
        return
    yield from _unknown("name in 'discovers'", hello.discovers, DISCOVERED)
    if "discover" not in hello.operations:
        yield "'discovers' needs operation discover"
    elif not hello.discovers:
        yield "'discovers' is empty: leave out operation 'discover'"


def _unknown(label: str, names: Iterable[str], known_names: Collection[str]) -> Iterator[str]:
    yield from (unknown(label, one, known_names) for one in names if one not in known_names)


def how_claimed(feature: Feature) -> str:
    """How ``hello`` claims a feature, such as ``operation devices``."""
    if feature.is_named:
        return "its name in features"
    # Features with policies are claimed by the policies, because the operations alone are
    # ambiguous.
    return ", ".join(_policies(feature) or describe_needs(feature))


def describe_needs(feature: Feature) -> tuple[str, ...]:
    """The operations and policies that a feature needs."""
    return (*(f"operation {one}" for one in feature.operations), *_policies(feature))


def _policies(feature: Feature) -> tuple[str, ...]:
    return tuple(f"{_CALLED[one]} {' or '.join(policies)}" for one, policies in feature.policies)


def needed_features(needs: Collection[str]) -> tuple[str, ...]:
    """The features among the claims that a case needs."""
    return tuple(name for name, one in FEATURES.items() if not _claims(one).isdisjoint(needs))


def _claims(feature: Feature) -> frozenset[str]:
    if feature.is_named:
        return frozenset({f"feature {feature.name}"})
    policies = (
        f"{_CALLED[manager]} {policy}" for manager, those in feature.policies for policy in those
    )
    operations = () if feature.policies else feature.operations
    return frozenset((*policies, *(f"operation {one}" for one in operations)))
