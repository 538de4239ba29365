"""What `hello` claims exists and goes together, or the handshake fails and says why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numaproof.conformance.claims.names import problems
from numaproof.conformance.execution.implementation import BrokeProtocol, InProcess, handshake
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference


class Claiming(Reference):
    """The reference, with other claims."""

    def __init__(self, **claims: Any) -> None:
        super().__init__()
        self._claims = claims

    def hello(self, args: messages.HelloArgs) -> messages.Hello:
        """What the reference says of itself, changed."""
        return msgspec.structs.replace(super().hello(args), **self._claims)


def greeted(**claims: Any) -> messages.Hello:
    return handshake(InProcess(lambda: Claiming(**claims)), "tests")


@pytest.mark.parametrize(
    ("claims", "complaint"),
    [
        ({"operations": ("start", "admitt")}, "unknown operation 'admitt'; did you mean 'admit'?"),
        (
            {"policies": messages.Policies(cpu=("none", "Static"))},
            "unknown CPU Manager policy 'Static'; did you mean 'static'?",
        ),
        (
            {"policies": messages.Policies(scope=("node",))},
            "unknown Topology Manager scope 'node'; known are container, pod",
        ),
        (
            {"options": messages.Options(cpu=("full-pcpu-only",))},
            "unknown CPU Manager option 'full-pcpu-only'; did you mean 'full-pcpus-only'?",
        ),
        (
            {"options": messages.Options(topology=("prefer-closest-numa-node",))},
            "option 'prefer-closest-numa-node'; did you mean 'prefer-closest-numa-nodes'?",
        ),
        ({"features": ("sidecar",)}, "unknown feature 'sidecar'; did you mean 'sidecars'?"),
        (
            {"features": ("devices",)},
            "feature 'devices' is claimed by operation devices, not by name",
        ),
        (
            {"features": ("memory-manager",)},
            "feature 'memory-manager' is claimed by Memory Manager policy Static, not by name",
        ),
        (
            {"features": ("container-removal",), "operations": ("start", "admit")},
            "feature 'container-removal' needs operation remove",
        ),
        (
            {"features": ("huge-pages",), "policies": messages.Policies()},
            "feature 'huge-pages' needs operation admit, Memory Manager policy Static",
        ),
        ({"features": ()}, "level 'kubelet' compares checkpoint files: claim feature "),
        (
            {"discovers": ("cores", "node_memmory")},
            "unknown name in 'discovers' 'node_memmory'; did you mean 'node_memory'?",
        ),
        (
            {"discovers": ("cores",), "operations": ("start",)},
            "'discovers' needs operation discover",
        ),
        ({"discovers": ()}, "'discovers' names nothing: leave out operation 'discover'"),
        ({"kubernetes": ("1.36", "1.35.4")}, "'1.35.4' is not a minor release, such as '1.37'"),
    ],
)
def test_a_claim_that_does_not_exist_is_a_failed_handshake(
    claims: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BrokeProtocol) as failed:
        greeted(**claims)
    assert str(failed.value).startswith("hello: ")
    assert complaint in str(failed.value)


def test_the_reference_claims_nothing_that_does_not_exist() -> None:
    assert list(problems(greeted())) == []


def test_options_and_releases_that_only_some_know_may_be_claimed() -> None:
    options = messages.Options(cpu=("strict-cpu-reservation",))
    hello = greeted(options=options, kubernetes=("1.31", "1.99"))
    assert hello.kubernetes == ("1.31", "1.99")


@pytest.mark.parametrize(
    ("misspelt", "complaint"),
    [
        ({"level": "placment"}, "unknown level 'placment'; did you mean 'placement'?"),
        ({"feature": []}, "unknown field 'feature'; did you mean 'features'?"),
        ({"level": 3}, "Expected `str`, got `int`"),
    ],
)
def test_a_misspelt_level_or_field_names_the_nearest(
    misspelt: dict[str, Any], complaint: str
) -> None:
    plain = {**codec.to_plain(greeted()), **misspelt}
    with pytest.raises(codec.ProtocolError) as wrong:
        codec.decode_answer(codec.encode({"id": 1, "ok": plain}), 1, "hello")
    assert complaint in str(wrong.value)
