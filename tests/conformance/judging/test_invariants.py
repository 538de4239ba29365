"""What every correct implementation keeps: each invariant sees its own violation and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders import pods
from builders.containers import running
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.invariants import View, Violation
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.machine import MachineInfo

WHOLE = pods.guaranteed({"cpu": "2", "memory": "1Gi"})


def container(cpus: str, exclusive: str = "") -> messages.Container:
    return running(cpus, exclusive)


def pod(name: str, *containers: str, init: Iterable[dict[str, Any]] = ()) -> messages.Pod:
    return pods.pod(f"uid-{name}", [pods.container(one, WHOLE) for one in containers], init)


@pytest.fixture
def facts(info: MachineInfo) -> Facts:
    return Facts(info)


@pytest.fixture
def view(facts: Facts) -> View:
    """CPU 0 reserved, pod a with 2-3, pod b with 4-5, the rest shared."""
    cpus = messages.StartedCPUs(CPUSet.parse("0-7"), CPUSet.parse("1-7"))
    return View(
        facts=facts,
        config={"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}},
        pods={"uid-a": pod("a", "app"), "uid-b": pod("b", "app")},
        ended=frozenset(),
        started=messages.Started(cpus, ()),
        state=state("0-1,6-7", a="2-3", b="4-5"),
    )


def state(shared: str, **exclusive: str) -> messages.State:
    return messages.State(
        CPUSet.parse(shared),
        {f"uid-{name}": {"app": container(cpus, cpus)} for name, cpus in exclusive.items()},
    )


def changed(view: View, **changes: Any) -> View:
    return View(**{**{name: getattr(view, name) for name in view.__dataclass_fields__}, **changes})


def names(found: Iterator[Violation]) -> list[str]:
    return [violation.invariant for violation in found]


def test_a_sound_node_breaks_nothing(view: View) -> None:
    assert names(invariants.on_start(view)) == []
    assert names(invariants.on_state(view)) == []
    assert names(invariants.on_change(view, view)) == []
    assert names(invariants.on_refusal(view, view)) == []


@pytest.mark.parametrize(
    ("config", "broken"),
    [
        ({"kubeReserved": {"cpu": "250m"}, "systemReserved": {"cpu": "500m"}}, []),
        ({"kubeReserved": {"cpu": "1500m"}}, ["reservation-in-full"]),
        ({"reservedSystemCPUs": "0", "kubeReserved": {"cpu": "4"}}, []),
        ({"reservedSystemCPUs": "1"}, ["named-cpus-are-reserved"]),
        ({"reservedSystemCPUs": "0-1"}, ["named-cpus-are-reserved", "reservation-in-full"]),
    ],
)
def test_what_is_reserved_follows_from_the_configuration(
    view: View, config: dict[str, Any], broken: list[str]
) -> None:
    config = {"cpuManagerPolicy": "static", **config}
    assert names(invariants.on_start(changed(view, config=config))) == broken


def test_a_cpu_reserved_by_name_is_never_exclusive_whatever_a_start_says(view: View) -> None:
    config = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "2"}
    found = names(invariants.on_state(changed(view, config=config)))
    assert found == ["reserved-never-exclusive", "reserved-stay-shared"]


@pytest.mark.parametrize(
    ("after", "broken"),
    [
        (state("0-1,6-7", a="2-3"), ["state-lists-pods-on-node"]),
        (state("0-1,5-7", a="2-3", b="4"), ["exclusive-count"]),
        (state("0-1,5-7", a="2-3", b="3-4"), ["exclusive-to-one"]),
        (state("1,4-7", a="2-3", b="0,4"), ["reserved-never-exclusive", "reserved-stay-shared"]),
        (state("0-2,6-7", a="2-3", b="4-5"), ["shared-or-exclusive"]),
        (state("0-1,7", a="2-3", b="4-5"), ["no-cpu-lost"]),
        (state("0-1,6-8", a="2-3", b="4-5"), ["no-cpu-invented"]),
        (state("1,6-7", a="2-3", b="4-5"), ["reserved-stay-shared", "no-cpu-lost"]),
    ],
)
def test_each_broken_rule_is_found(view: View, after: messages.State, broken: list[str]) -> None:
    found = names(invariants.on_state(changed(view, state=after)))
    assert set(broken) <= set(found)


def test_the_guilty_cpus_and_containers_are_named(view: View) -> None:
    after = changed(view, state=state("0-1,5-7", a="2-3", b="3-4"))
    (found,) = invariants.on_state(after)
    assert found.cpus == CPUSet([3])
    assert found.places == (("uid-a", "app"), ("uid-b", "app"))
    assert found.requirement == "CPU-STATIC-003"


def test_under_policy_none_nobody_has_exclusive_cpus(view: View) -> None:
    none = changed(view, config={})
    assert names(invariants.on_state(none)) == ["none-pins-nothing"] * 2


def test_a_container_runs_on_its_own_cpus_or_the_shared_pool(view: View) -> None:
    held = {**view.state.pods, "uid-a": {"app": container("2", "2-3")}}
    after = msgspec.structs.replace(view.state, pods=held)
    assert names(invariants.on_state(changed(view, state=after))) == ["runs-on-its-own-or-shared"]


def test_every_container_has_to_be_answered(view: View) -> None:
    more = {"uid-a": pod("a", "app", "other"), "uid-b": view.pods["uid-b"]}
    assert "every-container-answered" in names(invariants.on_state(changed(view, pods=more)))


def with_init(view: View, *, sidecar: bool) -> View:
    alone = pod("a", "app", init=[pods.container("init", WHOLE, sidecar=sidecar)])
    held = {"uid-a": {"init": container("2-3", "2-3"), "app": container("2-3", "2-3")}}
    after = messages.State(CPUSet.parse("0-1,4-7"), held)
    return changed(view, pods={"uid-a": alone}, state=after)


def test_an_init_container_may_share_with_its_pod_and_a_sidecar_may_not(view: View) -> None:
    assert names(invariants.on_state(with_init(view, sidecar=False))) == []
    found = list(invariants.on_state(with_init(view, sidecar=True)))
    assert [(one.invariant, one.requirement) for one in found] == [
        ("exclusive-to-one", "CPU-INIT-007")
    ]


def test_a_container_that_has_ended_is_due_nothing(view: View) -> None:
    before = with_init(view, sidecar=False)
    held = {"uid-a": {**before.state.pods["uid-a"], "init": container("0-1,4-7")}}
    after = changed(before, state=messages.State(before.state.shared, held))
    assert names(invariants.on_state(after)) == ["exclusive-count"]
    ended = changed(after, ended=frozenset({("uid-a", "init")}))
    assert names(invariants.on_state(ended)) == []


def strict(view: View, shared: str) -> View:
    config = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"},
    }
    return changed(view, config=config, state=state(shared, a="2-3", b="4-5"))


def test_a_strict_reservation_stays_out_of_the_pool(view: View) -> None:
    assert names(invariants.on_state(strict(view, "1,6-7"))) == []
    assert names(invariants.on_state(strict(view, "0-1,6-7"))) == ["strict-reservation"]
    assert names(invariants.on_state(strict(view, "1,7"))) == ["no-cpu-lost"]


def test_whole_cores_are_whole(view: View) -> None:
    config = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    }
    assert names(invariants.on_state(changed(view, config=config))) == []
    broken = changed(view, config=config, state=state("0-1,4,7", a="2-3", b="5-6"))
    assert names(invariants.on_state(broken)) == ["whole-cores-only"] * 2


def test_a_start_names_the_machines_cpus(view: View) -> None:
    cpus = messages.StartedCPUs(CPUSet.parse("0-6"), CPUSet.parse("1-8"))
    wrong = changed(view, started=messages.Started(cpus, ()))
    assert names(invariants.on_start(wrong)) == [
        "start-names-all-cpus",
        "allocatable-within-machine",
    ]


def test_exclusive_cpus_stay_as_they_are_while_a_container_lives(view: View) -> None:
    after = changed(view, state=state("0-1,2-3", a="6-7", b="4-5"))
    (found,) = invariants.on_change(view, after)
    assert found.invariant == "exclusive-set-stays"
    assert found.cpus == CPUSet.parse("2-3")
    gone = changed(view, state=state("0-3,6-7", b="4-5"))
    assert names(invariants.on_change(view, gone)) == []


def test_a_refusal_leaves_the_pool_as_it_was(view: View) -> None:
    after = changed(view, state=state("0-1", a="2-3", b="4-5"))
    (found,) = invariants.on_refusal(view, after)
    assert found.invariant == "refusal-leaves-nothing"
    assert found.cpus == CPUSet.parse("6-7")


def test_the_state_keeps_what_an_admission_gave(view: View) -> None:
    good = messages.Admitted({"app": container("2-3", "2-3")})
    assert names(invariants.on_admission(good, view, view, "uid-a")) == []
    assert names(invariants.on_admission(good, view, view, "uid-gone")) == []
    other = messages.Admitted({"app": container("6-7", "6-7")})
    assert names(invariants.on_admission(other, view, view, "uid-a")) == [
        "state-keeps-what-was-given"
    ]
