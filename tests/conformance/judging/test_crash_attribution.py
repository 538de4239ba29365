"""The defects behind panics and endless calls: `panics.yaml` and `hangs.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.machines import bare
from builders.pods import container, pod
from builders.tables import Table
from numaproof.conformance.judging.known_defects import (
    BrokenCall,
    defect_of_hang,
    defect_of_panic,
    known_defects,
)
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import RELEASES
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.defects import DEFECTS

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


def fault(message: str, function: str) -> messages.Fault:
    """A panic in a function, as the adapter reports it."""
    return messages.Fault(message, TRACE.replace("FUNCTION", function))


def uncaught(message: str, function: str) -> messages.Fault:
    """The same panic, as a process that ends with it reports it."""
    recovered = fault(message, function)
    _, _, calls = recovered.trace.partition("panic.go:860 +0x13a\n")
    head = f"panic: {message}\n\ngoroutine 1 [running]:\n"
    return messages.Fault(f"panic: {message}", head + calls)


HANGS = Table(__file__, "hangs.yaml")
PANICS = yaml.safe_load(Path(__file__).with_name("panics.yaml").read_bytes())


BREAKDOWNS = frozenset(defect.name for defect in DEFECTS if not defect.answers)


@pytest.mark.parametrize("name", PANICS)
def test_a_panic_is_recognised_by_message_and_function(
    name: str,
) -> None:
    message, function = PANICS[name]
    assert defect_of_panic(fault(message, function), BREAKDOWNS) == name
    assert defect_of_panic(uncaught(message, function), BREAKDOWNS) == name
    assert defect_of_panic(fault("another message", function), BREAKDOWNS) is None
    assert defect_of_panic(fault(message, f"{MANAGERS}/cpumanager.another"), BREAKDOWNS) is None


def test_the_first_panic_and_non_runtime_function_count() -> None:
    message, function = PANICS["missing-huge-pages-panic"]
    within = fault(message, f"runtime.panicmem()\n\t/go/panic.go:1 +0x1\n{function}")
    other = TRACE.replace("FUNCTION", f"{MANAGERS}/cpumanager.another")
    for trace in (within.trace, other + within.trace):
        found = defect_of_panic(messages.Fault(message, trace), known_defects("1.36"))
        assert found == "missing-huge-pages-panic"


def test_a_release_without_the_defect_is_not_excused() -> None:
    broken = fault(*PANICS["hugepages-without-memory-panic"])
    assert defect_of_panic(broken, known_defects("1.33")) == "hugepages-without-memory-panic"
    assert defect_of_panic(broken, known_defects("1.34")) is None


@pytest.mark.parametrize("trace", ["", "nothing like a trace", "panic(1)", "panic(1)\nlast"])
def test_a_fault_without_a_location_matches_no_defect(trace: str) -> None:
    assert defect_of_panic(messages.Fault(NIL, trace), known_defects("1.33")) is None


@HANGS
def test_an_endless_call_is_recognised_by_its_arguments(row: dict[str, Any]) -> None:
    machine = bare(row.get("nodes", 2), distances=False)
    said = {}
    for operation, plain in row["calls"].items():
        call = BrokenCall(operation, args_of(operation, plain), row.get("config", {}), machine)
        found = {one: defect_of_hang(call, known_defects(one)) for one in RELEASES[-3:]}
        said[operation] = {release: name for release, name in found.items() if name}
    HANGS.check(row, said)


def args_of(operation: str, plain: Any) -> messages.Args:
    """The arguments of a call: a pod's limits, options, or the numbers of two providers' hints."""
    match operation:
        case "merge":
            provider = {"cpu": [{"numa": [0], "preferred": True}] * plain, "none": None}
            merge = {
                "nodes": [0, 1],
                "policy": "restricted",
                "providers": [provider, None, provider],
            }
            return codec.from_plain(merge, messages.MergeArgs)
        case "assign":
            return messages.AssignArgs(MachineInfo(), CPUSet(), 4, plain)
        case _:
            asked = pod("u", [container("app", {"limits": plain})])
            return (
                messages.AdmitArgs(asked)
                if operation == "admit"
                else messages.HintsArgs(asked, None)
            )


def test_every_defect_without_an_answer_can_be_recognised() -> None:
    hangs = {
        "distribute-endless-loop",
        "distribute-overwritten-endless-loop",
        "merge-of-all-combinations",
        "device-hints-over-all-nodes",
    }
    assert {*BREAKDOWNS} == hangs | PANICS.keys()
