"""The claims of a kubelet are consistent in every release."""

from __future__ import annotations

from pathlib import Path

import pytest

from numaproof.conformance.claims import names
from numaproof.kubelet.binary import Kubelet
from numaproof.kubelet.claims import hello
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.releases import release


@pytest.mark.parametrize("number", RELEASES)
def test_claims_are_known_and_consistent(number: str) -> None:
    claims = hello(Kubelet(Path("kubelet"), f"{number}.1+k3s1", number), {"Go": "go1"})
    assert list(names.problems(claims)) == []
    assert claims.version == f"{number}.1+k3s1"
    assert claims.build == {"Go": "go1"}
    assert claims.kubernetes == (number,)
    assert claims.options.cpu == tuple(release(number).cpu_options)
    assert ("resize" in claims.operations) == release(number).resizes_pods


def test_a_release_that_is_not_its_own_is_a_part_of_its_build() -> None:
    claims = hello(Kubelet(Path("kubelet"), "1.38.0", "1.37"), {})
    assert claims.build == {"checked as": "1.37"}


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.37.1", "kubelet-binary"),
        ("1.36.0-alpha.2.33+0123abcd-dirty", "kubelet-binary"),
        ("1.36.0-rc.1", "kubelet-binary"),
        ("1.34.1-k3s1", "kubelet-binary-k3s"),
        ("1.34.1+rke2r1", "kubelet-binary-rke2"),
        ("1.33.5-eks-113cf36", "kubelet-binary-eks"),
        ("1.32.4-gke.1415000", "kubelet-binary-gke"),
    ],
)
def test_the_build_of_a_vendor_has_its_own_name(version: str, name: str) -> None:
    release = version[:4]
    assert hello(Kubelet(Path("kubelet"), version, release), {}).name == name
