"""The suite can fail: a broken reference is caught, every time, by the tables alone.

Each fault is small, named, and like a bug that an implementation could have. It replaces one
function or method of the reference; nothing of the harness is touched, and nothing is compared
with a healthy reference: what catches it are the expectations of the cases and the invariants.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance import runner, tables
from numaproof.conformance.campaign import Campaign
from numaproof.conformance.implementation import InProcess, introduce
from numaproof.conformance.machines import Machine
from numaproof.conformance.playing import Target
from numaproof.conformance.registry import load_registry
from numaproof.conformance.scratch import scratch_folder
from numaproof.protocol import messages
from numaproof.protocol.events import GOOD, CaseFinished
from numaproof.reference import managers, node, startup
from numaproof.reference.cpu import assignment, checkpoint, hints, options, policy
from numaproof.reference.cpu.policy import StaticPolicy
from numaproof.reference.cpu.state import CPUState, Reuse
from numaproof.reference.kubernetes import quantity

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]

FAULTS: dict[str, Fault] = {}


def fault(function: Fault) -> Fault:
    """Registers a fault under its function's name."""
    FAULTS[function.__name__.replace("_", " ")] = function
    return function


def replacing_policy(patch: Patch, **changes: object) -> None:
    """Makes every static policy with some fields changed, after its reservation is chosen."""
    make = startup.make_static

    def changed(*args: Any) -> StaticPolicy:
        return dataclasses.replace(make(*args), **changes)

    patch.setattr(startup, "make_static", changed)


@fault
def reserved_cpus_are_handed_out(patch: Patch) -> None:
    patch.setattr(StaticPolicy, "available", lambda self, state: state.shared)


@fault
def removed_pods_keep_their_cpus(patch: Patch) -> None:
    patch.setattr(managers.Node, "reclaim", lambda self: None)


@fault
def burstable_pods_get_exclusive_cpus(patch: Patch) -> None:
    allocate = StaticPolicy.allocate

    def generous(self: StaticPolicy, state: Any, reuse: Any, pod: Any, *rest: Any) -> Any:
        if pod.qos == "Burstable":
            pod = dataclasses.replace(pod, qos="Guaranteed")
        return allocate(self, state, reuse, pod, *rest)

    patch.setattr(StaticPolicy, "allocate", generous)


@fault
def fractions_round_up_to_exclusive_cpus(patch: Patch) -> None:
    allocate = StaticPolicy.allocate

    def rounding(
        self: StaticPolicy, state: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        amount = math.ceil(quantity.parse(container.requests.get("cpu", 0)))
        container = dataclasses.replace(
            container, requests={**container.requests, "cpu": str(amount)}
        )
        return allocate(self, state, reuse, pod, container, affinity)

    patch.setattr(StaticPolicy, "allocate", rounding)


@fault
def a_wrong_checksum_is_accepted(patch: Patch) -> None:
    read_as = checkpoint._read_as

    def trusting(version: str, content: bytes) -> dict[str, Any]:
        return read_as(version, re.sub(rb'"checksum":\d+', b'"checksum":0', content))

    patch.setattr(checkpoint, "_read_as", trusting)


@fault
def exclusive_cpus_stay_in_the_shared_pool(patch: Patch) -> None:
    assign = CPUState.assign

    def sharing(self: CPUState, uid: str, container: str, own: int) -> CPUState:
        return dataclasses.replace(assign(self, uid, container, own), shared=self.shared)

    patch.setattr(CPUState, "assign", sharing)


@fault
def released_cpus_are_lost(patch: Patch) -> None:
    release = CPUState.release

    def losing(self: CPUState, uid: str, container: str) -> CPUState:
        return dataclasses.replace(release(self, uid, container), shared=self.shared)

    patch.setattr(CPUState, "release", losing)


@fault
def an_ended_init_container_frees_what_its_pod_still_uses(patch: Patch) -> None:
    release = CPUState.release

    def hasty(self: CPUState, uid: str, container: str) -> CPUState:
        after = release(self, uid, container)
        return dataclasses.replace(after, shared=after.shared | (self.of(uid, container) or 0))

    patch.setattr(CPUState, "release", hasty)


@fault
def init_cpus_are_not_reused(patch: Patch) -> None:
    patch.setattr(Reuse, "of", lambda self, uid: 0)


@fault
def sidecar_cpus_are_reused(patch: Patch) -> None:
    allocate = StaticPolicy.allocate

    def forgetful(
        self: StaticPolicy, state: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        container = dataclasses.replace(container, sidecar=False)
        return allocate(self, state, reuse, pod, container, affinity)

    patch.setattr(StaticPolicy, "allocate", forgetful)


@fault
def whole_cores_are_not_asked_for(patch: Patch) -> None:
    patch.setattr(StaticPolicy, "check_alignment", lambda self, count, free: None)


@fault
def siblings_of_reserved_cpus_count_as_whole_cores(patch: Patch) -> None:
    replacing_policy(patch, broken=0)


@fault
def strict_reservation_is_ignored(patch: Patch) -> None:
    parse = options.parse

    def lenient(*args: Any) -> Any:
        return dataclasses.replace(parse(*args), strict=False)

    patch.setattr(options, "parse", lenient)


@fault
def hidden_options_are_available(patch: Patch) -> None:
    value = options._value
    patch.setattr(
        options, "_value", lambda name, text, release, gates: value(name, text, release, None)
    )


@fault
def conflicting_options_are_accepted(patch: Patch) -> None:
    patch.setattr(options, "_INCOMPATIBLE", ())


@fault
def reservation_takes_the_last_cores(patch: Patch) -> None:
    make = startup.make_static

    def backwards(topology: Any, chosen: Any, count: int, named: int, release: Any) -> Any:
        highest = sorted(topology.all_cpus, reverse=True)[:count]
        return make(topology, chosen, count, named or sum(1 << cpu for cpu in highest), release)

    patch.setattr(startup, "make_static", backwards)


@fault
def a_restart_forgets_assignments(patch: Patch) -> None:
    patch.setattr(StaticPolicy, "restore", lambda self, state: CPUState(self.topology.cpus))


@fault
def a_restart_accepts_any_set_of_cpus(patch: Patch) -> None:
    patch.setattr(CPUState, "all_cpus", lambda self: -1)
    restore = StaticPolicy.restore

    def blind(self: StaticPolicy, state: CPUState) -> CPUState:
        return state if state.shared else restore(self, state)

    patch.setattr(StaticPolicy, "restore", blind)


@fault
def another_policys_checkpoint_is_accepted(patch: Patch) -> None:
    restore = checkpoint.restore

    def careless(content: bytes, wanted: str, running: Any, release: Any) -> Any:
        for name in (wanted, "static", "none"):
            try:
                return restore(content, name, running, release)
            except checkpoint.CheckpointError as error:
                last = error
        raise last

    patch.setattr(checkpoint, "restore", careless)


@fault
def single_threads_come_before_whole_cores(patch: Patch) -> None:
    patch.setattr(assignment, "_whole_cores", lambda topology, progress: progress)


@fault
def requests_are_spread_over_cores(patch: Patch) -> None:
    style = StaticPolicy.style.fget
    assert style is not None
    patch.setattr(StaticPolicy, "style", property(lambda self: style(self)._replace(spread=True)))


@fault
def uncore_caches_are_ignored(patch: Patch) -> None:
    style = StaticPolicy.style.fget
    assert style is not None
    patch.setattr(
        StaticPolicy, "style", property(lambda self: style(self)._replace(by_uncore=False))
    )


@fault
def distribution_over_nodes_is_ignored(patch: Patch) -> None:
    patch.setattr(
        policy,
        "distributed",
        lambda topology, free, count, group, style: assignment.packed(topology, free, count, style),
    )


@fault
def reconcile_repeats_itself(patch: Patch) -> None:
    reconcile = managers.Node.reconcile

    def chatty(self: managers.Node, args: messages.NoArgs) -> messages.Reconciled:
        self.told.clear()
        return reconcile(self, args)

    patch.setattr(managers.Node, "reconcile", chatty)


@fault
def reconcile_tells_nobody(patch: Patch) -> None:
    patch.setattr(managers.Node, "reconcile", lambda self, args: messages.Reconciled(()))


@fault
def hints_count_reserved_cpus(patch: Patch) -> None:
    generate = hints.generate
    patch.setattr(
        hints,
        "generate",
        lambda static, available, reusable, count: generate(
            static, available | static.reserved, reusable, count
        ),
    )


@fault
def a_refused_pod_stays(patch: Patch) -> None:
    patch.setattr(managers.Node, "_drop", lambda self, uid: None)


@fault
def discovery_drops_nodes_without_cpus(patch: Patch) -> None:
    discover = node.discover

    def dropping(*args: Any) -> MachineInfo:
        found = discover(*args)
        kept = tuple(one for one in found.topology or () if one.cores)
        return msgspec.structs.replace(found, topology=kept)

    patch.setattr(node, "discover", dropping)


@fault
def discovery_counts_memory_twice(patch: Patch) -> None:
    discover = node.discover

    def twice(*args: Any) -> MachineInfo:
        found = discover(*args)
        return msgspec.structs.replace(found, memory_capacity=2 * found.memory_capacity)

    patch.setattr(node, "discover", twice)


MACHINES = (
    "laptop-4c8t",
    "core-i7-7700",
    "core-i7-9700",
    "epyc-7402p-nosmt",
    "xeon-gold-6230-2s-snc2",
    "xeon-gold-6230-2s",
    "offline-half-cores",
    "offline-node",
    "vm-sparse-cpus",
    "memoryless-node",
)


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Sequence[Machine]]:
    """A few machines of different shapes; their trees are written once."""
    with scratch_folder() as folder:
        yield [Machine(fakesys.load_profile(name), folder) for name in MACHINES]


def failures(catalogue: Sequence[Machine]) -> Iterator[CaseFinished]:
    """The case runs that the reference, as it is now, does not pass."""
    reference = InProcess(node.Reference)
    hello = introduce(reference, "test")
    target = Target(reference, hello, hello.kubernetes[-1], hello.level)
    runs = runner.select(tables.bundled_cases(), catalogue, target)
    for event in runner.run(runs, Campaign(target, load_registry(), "numaproof check", "0")):
        if isinstance(event, CaseFinished) and event.outcome not in GOOD:
            yield event


def test_the_healthy_reference_passes(catalogue: Sequence[Machine]) -> None:
    assert [(one.case, one.machine, one.message) for one in failures(catalogue)] == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_reference_is_caught(
    name: str, catalogue: Sequence[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[name](monkeypatch)
    caught = next(failures(catalogue), None)
    assert caught is not None
    assert caught.message
    assert caught.requirements
