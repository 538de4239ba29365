"""Nothing that an implementation does not claim is asked of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numaproof.conformance.claims import needs
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet


def capabilities(**changes: Any) -> Capabilities:
    hello = messages.Hello(
        protocol=1,
        name="toy",
        version="1",
        language="C",
        kubernetes=("1.35",),
        level="admission",
        operations=("start", "assign", "merge"),
        policies=messages.Policies(cpu=("none", "static"), topology=("none", "restricted")),
        options=messages.Options(cpu=("full-pcpus-only",), topology=()),
    )
    return Capabilities(msgspec.structs.replace(hello, **changes), "1.35")


def require(capable: Capabilities, operation: str, args: messages.Args) -> None:
    capable.require(needs.of_call(operation, args, capable.kubernetes, MachineInfo()))


@pytest.mark.parametrize(
    ("operations", "can"), [(("discover",), False), (("assign",), True), (("merge", "state"), True)]
)
def test_who_only_discovers_has_no_scenarios(operations: tuple[str, ...], can: bool) -> None:  # noqa: FBT001
    capable = capabilities(operations=operations)
    assert capable.can_be_fuzzed is can
    if can:
        verbs = {step.verb for seed in range(20) for step in seeded_scenario(seed, capable).steps}
        assert verbs == {*operations} - {"state"}


def start(**config: Any) -> messages.StartArgs:
    return messages.StartArgs(config=config, state_dir="/nonexistent")


def merge(policy: str, **options: str) -> messages.MergeArgs:
    return messages.MergeArgs(nodes=(0,), policy=policy, providers=(), options=options)


def assign(**options: str) -> messages.AssignArgs:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return messages.AssignArgs(MachineInfo(), CPUSet(), 1, named)


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("hello", messages.HelloArgs((1, 1), "tests")),
        ("start", start()),
        ("start", start(cpuManagerPolicy="static")),
        ("start", start(cpuManagerPolicy="bogus")),
        ("start", start(cpuManagerPolicy=["static"])),
        ("start", start(memoryManagerPolicy="None", topologyManagerScope="container")),
        ("start", start(topologyManagerPolicy="restricted")),
        ("start", start(cpuManagerPolicyOptions={"full-pcpus-only": "true", "bogus": "true"})),
        ("start", start(cpuManagerPolicyOptions=["full-pcpus-only"])),
        ("assign", assign(full_pcpus_only="true")),
        ("merge", merge("restricted")),
    ],
)
def test_what_is_claimed_and_what_nobody_knows_may_be_sent(
    operation: str, args: messages.Args
) -> None:
    require(capabilities(), operation, args)


@pytest.mark.parametrize(
    ("operation", "args", "missing"),
    [
        ("state", messages.NoArgs(), "operation state"),
        ("start", start(memoryManagerPolicy="Static"), "Memory Manager policy Static"),
        (
            "start",
            start(topologyManagerPolicy="best-effort"),
            "Topology Manager policy best-effort",
        ),
        ("start", start(topologyManagerScope="pod"), "Topology Manager scope pod"),
        (
            "start",
            start(cpuManagerPolicyOptions={"strict-cpu-reservation": "true"}),
            "CPU Manager option strict-cpu-reservation",
        ),
        (
            "start",
            start(topologyManagerPolicyOptions={"prefer-closest-numa-nodes": "true"}),
            "Topology Manager option prefer-closest-numa-nodes",
        ),
        ("assign", assign(align_by_socket="true"), "CPU Manager option align-by-socket"),
        ("merge", merge("single-numa-node"), "Topology Manager policy single-numa-node"),
    ],
)
def test_what_is_known_and_not_claimed_is_not_supported(
    operation: str, args: messages.Args, missing: str
) -> None:
    with pytest.raises(NotSupportedError, match=f"^{missing}$"):
        require(capabilities(), operation, args)


def test_a_policy_is_asked_for_by_default_too() -> None:
    static_alone = capabilities(policies=messages.Policies(cpu=("static",)))
    with pytest.raises(NotSupportedError, match="CPU Manager policy none"):
        require(static_alone, "start", start())


def test_whoever_lists_no_policy_of_a_manager_has_it_switched_off() -> None:
    nothing = capabilities(policies=messages.Policies())
    require(nothing, "start", start())
    with pytest.raises(NotSupportedError, match="CPU Manager policy static"):
        require(nothing, "start", start(cpuManagerPolicy="static"))
