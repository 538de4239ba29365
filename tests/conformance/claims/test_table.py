"""Features, what is assumed of a `hello` without them, and the cases that need each."""

from __future__ import annotations

import msgspec
import pytest

from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.selection import needs
from numaproof.protocol import features, messages
from numaproof.reference.implementation import Reference

HELLO = msgspec.structs.replace(Reference().hello(hello_args("tests")), features=None)


OF_VERSION_1 = tuple(name for name in features.NAMED if features.FEATURES[name].since == "1")


def test_of_a_kubelet_that_names_no_features_all_of_version_1_are_assumed() -> None:
    assert features.assumed(HELLO) == OF_VERSION_1
    assert {*features.NAMED} - {*OF_VERSION_1} == {
        "quota",
        "effective-configuration",
        "refused-pods",
        "flags",
        "preferred-devices",
    }


@pytest.mark.parametrize("level", ["invariants", "admission", "placement"])
def test_checkpoint_files_are_only_assumed_of_a_kubelet(level: str) -> None:
    other = msgspec.structs.replace(HELLO, level=level)
    assert {*OF_VERSION_1} - {*features.assumed(other)} == {"checkpoint-files"}


def test_what_operations_and_policies_do_not_allow_is_not_assumed() -> None:
    small = msgspec.structs.replace(
        HELLO, level="invariants", operations=("start", "state"), policies=messages.Policies()
    )
    assert features.assumed(small) == (
        "restart",
        "configuration-validation",
        "reconfiguration",
        "feature-gates",
    )


def test_named_features_are_claimed_as_they_are_named() -> None:
    assert features.claimed(msgspec.structs.replace(HELLO, features=())) == ()


def test_every_feature_has_one_line_and_a_count() -> None:
    for row in needs.rows():
        assert len(row.meaning) < 160, row.name
        assert row.cases > 0, row.name
