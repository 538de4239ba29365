"""Several programs as one implementation: which answers, and which has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.conformance.differential.by_release import ByRelease
from numaproof.conformance.execution.implementation import BrokeProtocol, handshake
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo


class Kubelet:
    """The reference as one release; it counts how often it was ended."""

    def __init__(self, release: str, **claims: Any) -> None:
        self.release = release
        self.claims = claims
        self.ends = 0
        self._reference = Reference()

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The reference's answer; it greets as its release alone."""
        answer = self._reference.call(operation, args)
        if isinstance(answer, messages.Hello):
            only = {"kubernetes": (self.release,), "version": f"{self.release}.0", **self.claims}
            return msgspec.structs.replace(answer, **only)
        return answer

    def close(self) -> None:
        """Forgets its node, as a process that ends."""
        self.ends += 1
        self._reference = Reference()


def start(release: str, folder: Path, machine: MachineInfo) -> messages.StartArgs:
    return messages.StartArgs(
        config={"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"},
        state_dir=str(folder),
        kubernetes=release,
        machine=machine,
    )


def test_a_start_ends_the_program_of_another_release(tmp_path: Path, info: MachineInfo) -> None:
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


def test_together_they_claim_the_releases_and_options_of_all_and_what_they_share() -> None:
    some = messages.Options(cpu=("full-pcpus-only",), topology=())
    others = messages.Options(
        cpu=("align-by-socket", "full-pcpus-only"), topology=("max-allowable-numa-nodes",)
    )
    hello = handshake(
        ByRelease(
            (
                Kubelet("1.35", options=some, level="admission", features=("restart", "sidecars")),
                Kubelet(
                    "1.36",
                    options=others,
                    operations=("start", "admit"),
                    features=("restart", "checkpoint-files"),
                ),
            ),
            "tests",
        ),
        "tests",
    )
    assert hello.kubernetes == ("1.35", "1.36")
    assert hello.version == "1.36.0"
    assert hello.options.cpu == ("full-pcpus-only", "align-by-socket")
    assert hello.options.topology == ("max-allowable-numa-nodes",)
    assert hello.operations == ("start", "admit")
    assert hello.features == ("restart",)
    assert hello.level == "admission"


def test_features_that_neither_names_are_assumed_of_both() -> None:
    both = ByRelease((Kubelet("1.35", features=None), Kubelet("1.36", features=None)), "tests")
    assert handshake(both, "tests").features is None


def test_features_that_only_one_names_are_assumed_of_the_other() -> None:
    named = Kubelet("1.36", level="placement", features=("restart", "checkpoint-files"))
    both = ByRelease((Kubelet("1.35", level="placement", features=None), named), "tests")
    assert handshake(both, "tests").features == ("restart",)


def test_a_release_that_none_claims_is_no_answer(tmp_path: Path, info: MachineInfo) -> None:
    both = ByRelease((Kubelet("1.35"), Kubelet("1.36")), "tests")
    with pytest.raises(BrokeProtocol, match=r"no program claims Kubernetes 1\.34"):
        both.call("start", start("1.34", tmp_path, info))
