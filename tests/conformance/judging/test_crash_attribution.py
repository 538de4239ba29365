"""Which defect a panic or a call without an end is due to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builders.machines import bare
from builders.pods import container, pod
from numaproof.conformance.judging.known_defects import (
    BrokenCall,
    known_defects,
    never_answered,
    panicked,
)
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

NIL = "runtime error: invalid memory address or nil pointer dereference"
MANAGERS = "k8s.io/kubernetes/pkg/kubelet/cm"

TRACE = f"""\
goroutine 1 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:26 +0x5e
main.(*server).guarded.func1()
	/adapter/server.go:100 +0x189
panic({{0x1f82fa0?, 0x3ae4a40?}})
	/usr/local/go/src/runtime/panic.go:860 +0x13a
FUNCTION(0x3d89a0a40300, {{0x0, 0x0}}, 0x3d89a0a402a0)
	/root/go/pkg/mod/k8s.io/kubernetes@v1.33.13/pkg/kubelet/cm/x.go:814 +0xae
{MANAGERS}/memorymanager.(*manager).Allocate(0x3d89a04c25a0, 0x3d89a0416d88)
	/root/go/pkg/mod/k8s.io/kubernetes@v1.33.13/pkg/kubelet/cm/x.go:269 +0xcd
"""


def known(kubernetes: str) -> frozenset[str]:
    return known_defects(kubernetes)


def fault(message: str, function: str) -> messages.Fault:
    """A panic in a function, as the adapter tells it."""
    return messages.Fault(message, TRACE.replace("FUNCTION", function))


PANICS = yaml.safe_load(Path(__file__).with_name("panics.yaml").read_bytes())


def every_breakdown() -> Iterator[str]:
    return (defect.name for defect in DEFECTS if not defect.answers)


@pytest.mark.parametrize("name", PANICS)
def test_a_panic_is_recognised_by_its_message_and_the_function_that_it_happened_in(
    name: str,
) -> None:
    message, function = PANICS[name]
    everything = frozenset(every_breakdown())
    assert panicked(fault(message, function), everything) == name
    assert panicked(fault("another message", function), everything) is None
    assert panicked(fault(message, f"{MANAGERS}/cpumanager.another"), everything) is None


def test_calls_of_the_runtime_between_the_panic_and_the_kubelet_are_passed_over() -> None:
    message, function = PANICS["missing-huge-pages-panic"]
    within = f"runtime.panicmem()\n\t/go/panic.go:1 +0x1\n{function}"
    assert panicked(fault(message, within), known("1.36")) == "missing-huge-pages-panic"


def test_the_first_of_panics_counts() -> None:
    message, function = PANICS["missing-huge-pages-panic"]
    again = fault(message, function)
    trace = TRACE.replace("FUNCTION", f"{MANAGERS}/cpumanager.another") + again.trace
    assert panicked(messages.Fault(message, trace), known("1.36")) == "missing-huge-pages-panic"


def test_a_release_without_the_defect_has_no_excuse() -> None:
    broken = fault(*PANICS["hugepages-without-memory-panic"])
    assert panicked(broken, known("1.33")) == "hugepages-without-memory-panic"
    assert panicked(broken, known("1.34")) is None


@pytest.mark.parametrize("trace", ["", "nothing like a trace", "panic(1)", "panic(1)\nlast"])
def test_a_fault_that_does_not_say_where_is_due_to_none(trace: str) -> None:
    assert panicked(messages.Fault(NIL, trace), known("1.33")) is None


def limited(**limits: int) -> messages.Pod:
    named = {
        name.replace("device", "vendor.example/nic"): amount for name, amount in limits.items()
    }
    return pod("u", [container("app", {"limits": named})])


def asked(operation: str, args: messages.Args, nodes: int = 2, **config: Any) -> BrokenCall:
    machine = bare(nodes, distances=False)
    return BrokenCall(operation, args, config, machine)


BOTH = {"distribute-cpus-across-numa": "true", "full-pcpus-only": "true"}
RESTRICTED = {"topologyManagerPolicy": "restricted"}
ADMIT = messages.AdmitArgs(limited(cpu=2, memory=64))
DEVICES = messages.AdmitArgs(limited(cpu=2, memory=64, device=1))
HINTS = messages.HintsArgs(limited(cpu=2, memory=64, device=1), None)


def assign(options: dict[str, str]) -> messages.AssignArgs:
    return messages.AssignArgs(MachineInfo(), CPUSet(), 4, options)


def merge(hints: int) -> messages.MergeArgs:
    hint = messages.Hint((0,), preferred=True)
    provider = {"cpu": (hint,) * hints, "none": None}
    return messages.MergeArgs((0, 1), "restricted", (provider, None, provider))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (asked("admit", ADMIT, cpuManagerPolicyOptions=BOTH), "distribute-endless-loop"),
        (asked("assign", assign(BOTH)), "distribute-endless-loop"),
        (asked("assign", assign({"full-pcpus-only": "true"})), None),
        (asked("hints", HINTS, cpuManagerPolicyOptions=BOTH), None),
        (asked("admit", ADMIT), None),
        (asked("merge", merge(4000)), "merge-of-all-combinations"),
        (asked("merge", merge(40)), None),
        (asked("admit", DEVICES, nodes=8, **RESTRICTED), "merge-of-all-combinations"),
        (asked("hints", HINTS, nodes=8), "merge-of-all-combinations"),
        (asked("admit", DEVICES, nodes=8), None),
        (asked("admit", DEVICES, nodes=4, **RESTRICTED), None),
        (asked("admit", messages.AdmitArgs(limited(device=1)), nodes=34), None),
        (
            asked("admit", messages.AdmitArgs(limited(device=1)), nodes=17, **RESTRICTED),
            "device-hints-over-all-nodes",
        ),
    ],
)
def test_a_call_that_never_ends_is_recognised_by_its_arguments(
    call: BrokenCall, name: str | None
) -> None:
    assert never_answered(call, known("1.35")) == name


ACROSS = {"distribute-cpus-across-numa": "true"}
OVERWRITTEN = "distribute-overwritten-endless-loop"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (asked("admit", ADMIT, nodes=5, cpuManagerPolicyOptions=ACROSS), OVERWRITTEN),
        (asked("assign", assign(ACROSS), nodes=5), OVERWRITTEN),
        (asked("admit", ADMIT, nodes=4, cpuManagerPolicyOptions=ACROSS), None),
        (asked("admit", ADMIT, nodes=5), None),
        (asked("hints", HINTS, nodes=5, cpuManagerPolicyOptions=ACROSS), None),
    ],
)
def test_nodes_that_can_be_overwritten_may_keep_a_call_from_ending_since_1_37(
    call: BrokenCall, name: str | None
) -> None:
    assert never_answered(call, known("1.37")) == name
    assert never_answered(call, known("1.36")) is None


def test_every_defect_without_an_answer_can_be_recognised() -> None:
    hangs = {
        "distribute-endless-loop",
        "distribute-overwritten-endless-loop",
        "merge-of-all-combinations",
        "device-hints-over-all-nodes",
    }
    assert set(every_breakdown()) == hangs | PANICS.keys()
