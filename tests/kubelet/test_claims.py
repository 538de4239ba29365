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
    claims = hello(Kubelet(Path("kubelet"), f"{number}.1+k3s1", number))
    assert list(names.problems(claims)) == []
    assert claims.version == f"{number}.1+k3s1"
    assert claims.kubernetes == (number,)
    assert claims.options.cpu == tuple(release(number).cpu_options)
    assert ("resize" in claims.operations) == release(number).resizes_pods
