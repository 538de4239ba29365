"""Several programs as one implementation: which of them answers, and which are stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.conformance.differential.by_release import ByRelease
from numaproof.conformance.execution.implementation import BrokeProtocol, InProcess, handshake
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo


class Kubelet(InProcess):
    """A reference for a single release that counts how often it was closed."""

    def __init__(self, release: str, **claims: Any) -> None:
        super().__init__(Reference)
        self.claims = {"kubernetes": (release,), "version": f"{release}.0", **claims}
        self.ends = 0

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the reference's answer, with only its release in `hello`."""
        answer = super().call(operation, args)
        greets = isinstance(answer, messages.Hello)
        return msgspec.structs.replace(answer, **self.claims) if greets else answer

    def close(self) -> None:
        """Forgets its node, like a process that ends."""
        self.ends += 1
        super().close()


def start(release: str, folder: Path, machine: MachineInfo) -> messages.StartArgs:
    return messages.StartArgs(
        config={"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"},
        state_dir=str(folder),
        kubernetes=release,
        machine=machine,
    )


def test_a_start_stops_the_program_of_another_release(tmp_path: Path, info: MachineInfo) -> None:
    old, new = Kubelet("1.35"), Kubelet("1.36")
    both = ByRelease((old, new), "tests")
    assert isinstance(both.call("start", start("1.35", tmp_path, info)), messages.Started)
    ended = old.ends
    assert isinstance(both.call("start", start("1.35", tmp_path, info)), messages.Started)
    assert old.ends == ended
    assert isinstance(both.call("start", start("1.36", tmp_path, info)), messages.Started)
    assert old.ends == ended + 1
    state = both.call("state", messages.NoArgs())
    assert isinstance(state, messages.State)
    assert isinstance(old.call("state", messages.NoArgs()), messages.Fault)
    ended = new.ends
    both.close()
    assert new.ends == ended + 1


def test_combined_claims_are_unions_or_intersections() -> None:
    some = messages.Options(cpu=("full-pcpus-only",), topology=())
    others = messages.Options(
        cpu=("align-by-socket", "full-pcpus-only"), topology=("max-allowable-numa-nodes",)
    )
    old = Kubelet("1.35", options=some, level="admission", features=("restart", "sidecars"))
    new = Kubelet(
        "1.36",
        options=others,
        operations=("start", "admit"),
        features=("restart", "checkpoint-files"),
    )
    hello = handshake(ByRelease((old, new), "tests"), "tests")
    assert (hello.kubernetes, hello.version) == (("1.35", "1.36"), "1.36.0")
    assert hello.options.cpu == ("full-pcpus-only", "align-by-socket")
    assert hello.options.topology == ("max-allowable-numa-nodes",)
    assert (hello.operations, hello.features) == (("start", "admit"), ("restart",))
    assert hello.level == "admission"


@pytest.mark.parametrize(
    ("features", "common"), [(None, None), (("restart", "checkpoint-files"), ("restart",))]
)
def test_unlisted_features_of_a_program_are_assumed(
    features: tuple[str, ...] | None, common: tuple[str, ...] | None
) -> None:
    old = Kubelet("1.35", level="placement", features=None)
    new = Kubelet("1.36", level="placement", features=features)
    assert handshake(ByRelease((old, new), "tests"), "tests").features == common


def test_a_release_that_no_program_claims_fails(tmp_path: Path, info: MachineInfo) -> None:
    both = ByRelease((Kubelet("1.35"), Kubelet("1.36")), "tests")
    with pytest.raises(BrokeProtocol, match=r"no program claims Kubernetes 1\.34"):
        both.call("start", start("1.34", tmp_path, info))
