"""Memory, devices, affinity and files: each invariant sees its own violation and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders import machines, pods
from builders.containers import running
from builders.devices import NIC, reported
from builders.machines import GIB
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.invariants import View, Violation
from numaproof.conformance.judging.invariants.view import Arrival
from numaproof.protocol import messages
from numaproof.protocol.machine import HugePages
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGES = "hugepages-2Mi"

CONFIG = {
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "topologyManagerPolicy": "restricted",
    "kubeReserved": {"cpu": "1", "memory": "924Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}

MACHINE = machines.with_node(
    machines.regular(
        nodes=2,
        cores=2,
        sockets=2,
        adjacent=True,
        memory=4 * GIB,
        hugepages=(HugePages(1048576, 0),),
        ids_per_socket=True,
    ),
    1,
    hugepages=(HugePages(2048, 512),),
)


def block(*nodes: int, size: int = GIB, kind: str = "memory") -> messages.MemoryBlock:
    return messages.MemoryBlock(NUMASet(nodes), kind, size)


def hint(*nodes: int, preferred: bool = True) -> messages.Hint:
    return messages.Hint(NUMASet(nodes) if nodes else None, preferred)


NEAR_0 = hint(0)


def held(
    cpus: str = "2-3",
    memory: tuple[messages.MemoryBlock, ...] = (block(0),),
    affinity: messages.Hint = NEAR_0,
    devices: tuple[str, ...] | None = ("d0",),
) -> messages.Container:
    by_resource = None if devices is None else ({NIC: devices} if devices else {})
    return msgspec.structs.replace(
        running(cpus), memory=memory, affinity=affinity, devices=by_resource
    )


def container(name: str = "app", cpu: str = "2", *, sidecar: bool = False) -> dict[str, Any]:
    resources = pods.guaranteed({"cpu": cpu, "memory": "1Gi", NIC: "1"})
    return pods.container(name, resources, sidecar=sidecar)


def pod(name: str, *init: dict[str, Any]) -> messages.Pod:
    return pods.pod(f"uid-{name}", [container()], init)


NICS = reported(d0=(0,), d1=(1,), d2=None, ill=(0,), unhealthy="ill")


def state(shared: str, *, files: dict[str, str] | None = None, **held: Any) -> messages.State:
    containers = {
        f"uid-{name}": one if isinstance(one, dict) else {"app": one} for name, one in held.items()
    }
    return messages.State(CPUSet.parse(shared), containers, files or {})


SOUND = state("0-1,6-7", a=held(), b=held("4-5", (block(1),), hint(1), ("d1",)))

STARTED = messages.Started(
    messages.StartedCPUs(CPUSet.parse("0-7"), CPUSet.parse("1-7")),
    (block(0, size=3 * GIB), block(1, size=3 * GIB), block(1, size=GIB, kind=PAGES)),
)


@pytest.fixture
def view() -> View:
    """CPU 0 and 1Gi of node 0 reserved; pod a on node 0, pod b on node 1."""
    return View(
        facts=Facts(MACHINE),
        config=CONFIG,
        pods={"uid-a": pod("a"), "uid-b": pod("b")},
        ended=frozenset(),
        started=STARTED,
        state=SOUND,
        devices=(NICS,),
    )


def names(found: Iterable[Violation]) -> list[str]:
    return [violation.invariant for violation in found]


def with_a(view: View, **changes: Any) -> View:
    """The view with pod a's container changed."""
    changed = msgspec.structs.replace(view.state.pods["uid-a"]["app"], **changes)
    all_held = {**view.state.pods, "uid-a": {"app": changed}}
    return replace(view, state=msgspec.structs.replace(view.state, pods=all_held))


def test_of_a_state_with_other_pods_nothing_is_said_of_affinities(view: View) -> None:
    assert names(invariants.on_affinity(with_a(view, affinity=hint(1)))) == [
        "cpus-within-affinity",
        "memory-within-affinity",
    ]
    gone = replace(with_a(view, affinity=hint(1)), pods={"uid-b": pod("b")})
    assert names(invariants.on_affinity(gone)) == []


def test_a_sound_node_breaks_nothing(view: View) -> None:
    assert names(invariants.on_start(view)) == []
    assert names(invariants.on_state(view)) == []
    assert names(invariants.on_change(view, view)) == []
    assert names(invariants.on_refusal(view, view)) == []
    answer = messages.Admitted(dict(view.state.pods["uid-a"]))
    assert names(invariants.on_admission(answer, None, view, "uid-a")) == []


# Memory


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        ((block(0, size=4 * GIB), *STARTED.memory[1:]), 4 * GIB),
        (STARTED.memory[:2], 0),
        ((*STARTED.memory, block(0, size=GIB, kind=PAGES)), GIB),
    ],
)
def test_what_is_allocatable_is_what_is_not_reserved(
    view: View, memory: tuple[messages.MemoryBlock, ...], size: int
) -> None:
    started = messages.Started(STARTED.cpus, memory)
    (found,) = invariants.on_start(replace(view, started=started))
    assert (found.invariant, found.size) == ("memory-allocatable-but-reserved", size)
    none = {**CONFIG, "memoryManagerPolicy": "None"}
    assert names(invariants.on_start(replace(view, started=started, config=none))) == []


def test_a_node_that_is_reserved_beyond_its_memory_has_none(view: View) -> None:
    config = {**CONFIG, "reservedMemory": [{"numaNode": 0, "limits": {"memory": "5Gi"}}]}
    started = messages.Started(STARTED.cpus, STARTED.memory[1:])
    assert names(invariants.on_start(replace(view, config=config, started=started))) == []


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"memory": ()}, ["memory-as-requested"]),
        ({"memory": (block(0, size=GIB + 1),)}, ["memory-as-requested"]),
        ({"memory": (block(0), block(0, kind=PAGES))}, ["memory-as-requested"]),
        ({"memory": (block(0, 1),)}, ["memory-node-alone-or-in-group", "memory-within-affinity"]),
        ({"memory": (block(1),)}, ["memory-within-affinity"]),
        ({"affinity": hint(0, preferred=False)}, ["admitted-if-preferred"]),
        ({"affinity": hint(1)}, ["cpus-within-affinity", "memory-within-affinity"]),
        ({"devices": {NIC: ("d1",)}}, ["device-held-by-one"]),
    ],
)
def test_each_broken_rule_is_found(view: View, changes: dict[str, Any], broken: list[str]) -> None:
    found = names(invariants.on_state(with_a(view, **changes)))
    assert [one for one in found if one != "memory-never-exceeded"] == broken


def test_what_a_pod_held_before_a_restart_may_lie_off_an_affinity_that_came_later(
    view: View,
) -> None:
    away = with_a(view, affinity=hint(1))
    came = {"uid-a": Arrival(CONFIG, 1)}
    assert names(invariants.on_state(replace(away, arrivals=came, starts=2))) == []
    same = replace(away, arrivals=came, starts=1)
    assert "memory-within-affinity" in names(invariants.on_state(same))
    again = replace(same, returned=frozenset({"uid-a"}))
    assert names(invariants.on_state(again)) == []


@pytest.mark.parametrize(
    ("affinity", "changes", "broken"),
    [
        (hint(0), {}, []),
        (hint(1), {}, ["affinity-to-what-is-held"]),
        (hint(0, 1), {}, ["affinity-to-what-is-held"]),
        (hint(), {}, ["affinity-to-what-is-held"]),
        (hint(), {"starts": 1}, []),
        (hint(), {"config": {**CONFIG, "topologyManagerPolicy": "best-effort"}}, []),
        (hint(), {"config": {**CONFIG, "topologyManagerScope": "pod"}}, []),
        (hint(), {"config": {**CONFIG, "memoryManagerPolicy": "None"}}, []),
    ],
)
def test_after_a_restart_an_affinity_is_to_the_memory_that_is_held(
    view: View, affinity: messages.Hint, changes: dict[str, Any], broken: list[str]
) -> None:
    before = replace(view, starts=1)
    after = replace(with_a(view, affinity=affinity), **{"starts": 2, **changes})
    assert names(invariants.on_change(before, after)) == broken


def test_after_a_restart_nothing_is_said_of_the_affinity_of_a_pod_that_is_gone(view: View) -> None:
    gone = replace(with_a(view, affinity=hint(1)), pods={"uid-b": pod("b")}, starts=2)
    found = names(invariants.on_change(replace(view, starts=1), gone))
    assert "affinity-to-what-is-held" not in found


def test_after_a_restart_no_affinity_may_stand_for_all_nodes(view: View) -> None:
    wide = with_a(view, affinity=hint(), memory=(block(0, 1),))
    found = invariants.on_change(replace(wide, starts=1), replace(wide, starts=2))
    assert names(found) == []


def test_a_pod_keeps_what_gates_of_an_earlier_start_made_it_due(view: View) -> None:
    pod = view.pods["uid-a"]
    own = {**pod, "spec": {**pod["spec"], "resources": {"requests": {}}}}
    gates = {"featureGates": {"PodLevelResourcesFixKubeletQOSClass": False}}
    now = replace(view, pods={**view.pods, "uid-a": own}, config={**CONFIG, **gates})
    assert {"exclusive-count", "memory-of-guaranteed-only"} <= {*names(invariants.on_state(now))}
    kept = replace(now, arrivals={"uid-a": Arrival(CONFIG, 1)}, starts=2)
    assert names(invariants.on_state(kept)) == []
    assert names(invariants.on_change(with_a(kept, memory=()), kept)) == []
    assert names(invariants.on_change(with_a(now, memory=()), now)) == ["memory-stays"]


def test_only_guaranteed_containers_have_memory_pinned(view: View) -> None:
    burstable = pods.pod("uid-a", [pods.container("app", {"requests": {"memory": "1Gi"}})])
    wrong = replace(view, pods={**view.pods, "uid-a": burstable})
    assert "memory-of-guaranteed-only" in names(invariants.on_state(wrong))


def test_under_policy_none_no_memory_is_pinned(view: View) -> None:
    config = {**CONFIG, "memoryManagerPolicy": "None"}
    found = names(invariants.on_state(replace(view, config=config)))
    assert found == ["policy-none-pins-no-memory"] * 2


def test_no_more_is_pinned_than_nodes_have(view: View) -> None:
    large = with_a(view, memory=(block(0, size=3 * GIB + 1),))
    assert names(invariants.on_state(large)) == ["memory-as-requested", "memory-never-exceeded"]


def test_groups_of_several_nodes_do_not_overlap(view: View) -> None:
    overlapping = {
        "uid-a": {"app": held(memory=(block(0, 1),))},
        "uid-b": {"app": held("4-5", (block(1, 2),), hint(1), ("d1",))},
    }
    node = messages.State(CPUSet.parse("0-1,6-7"), overlapping)
    found = names(invariants.on_state(replace(view, state=node)))
    assert "memory-groups-disjoint" in found


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, "memory-node-in-use-joins-no-group"),
        # What was there before a restart, or came again, may have been served in any order.
        ({"starts": 2}, "memory-node-alone-or-in-group"),
        ({"returned": frozenset({"uid-a"})}, "memory-node-alone-or-in-group"),
        ({"pods": {"uid-b": pod("b"), "uid-a": pod("a")}}, "memory-node-alone-or-in-group"),
    ],
)
def test_a_group_over_a_node_in_use_is_told_from_a_node_taken_out_of_a_group(
    view: View, changes: dict[str, Any], broken: str
) -> None:
    over = {
        "uid-a": {"app": held(memory=(block(1),))},
        "uid-b": {"app": held("4-5", (block(0, 1),), hint(0, 1), ("d1",))},
    }
    node = messages.State(CPUSet.parse("0-1,6-7"), over)
    found = names(invariants.on_state(replace(view, state=node, **changes)))
    assert [one for one in found if one.startswith("memory-node-")] == [broken]


@pytest.mark.parametrize(("sidecar", "broken"), [(False, []), (True, ["memory-as-requested"])])
def test_an_init_container_leaves_its_memory_and_a_sidecar_does_not(
    view: View, broken: list[str], *, sidecar: bool
) -> None:
    init = held(memory=(), devices=() if sidecar else ("d0",))
    node = state("0-1,4-7", a={"init": init, "app": held()})
    one = replace(view, pods={"uid-a": pod("a", container("init", sidecar=sidecar))}, state=node)
    found = [one for one in names(invariants.on_state(one)) if one != "exclusive-to-one"]
    assert found == broken


@pytest.mark.parametrize(
    ("size", "changes", "broken"),
    [
        (2 * GIB, {}, []),
        (GIB, {}, []),
        (GIB - 1, {}, ["memory-as-requested"]),
        (2 * GIB + 1, {}, ["memory-as-requested"]),
        # What ended and came again may have taken it twice.
        (GIB - 1, {"returned": frozenset({"uid-a"})}, []),
        (GIB - 1, {"arrivals": {"uid-a": Arrival(CONFIG, 1)}, "starts": 2}, []),
        (GIB - 1, {"ended": frozenset({("uid-a", "app")})}, []),
    ],
)
def test_an_init_container_keeps_what_those_after_it_cannot_have(
    view: View, size: int, changes: dict[str, Any], broken: list[str]
) -> None:
    load = pods.container("load", pods.guaranteed({"cpu": "2", "memory": "2Gi"}))
    node = state("0-1,4-7", a={"load": held(memory=(block(0, size=size),)), "app": held()})
    one = replace(view, pods={"uid-a": pod("a", load)}, state=node, **changes)
    found = [one for one in names(invariants.on_state(one)) if one.startswith("memory-as")]
    assert found == broken


# Devices


def admitted(view: View, *ids: str, **changes: Any) -> list[str]:
    after = with_a(view, devices={NIC: ids}, **changes)
    answer = messages.Admitted(dict(after.state.pods["uid-a"]))
    before = replace(view, state=state("0-3,6-7", b=SOUND.pods["uid-b"]))
    return names(invariants.on_admission(answer, before, after, "uid-a"))


def test_devices_that_are_given_are_as_many_healthy_and_near(view: View) -> None:
    assert admitted(view, "d0") == []
    assert admitted(view) == ["devices-as-requested"]
    assert admitted(view, "d0", "d1") == ["devices-as-requested", "devices-near-affinity"]
    assert admitted(view, "ill") == ["devices-given-are-healthy"]
    assert admitted(view, "d2") == ["devices-near-affinity"]
    assert admitted(view, "d1", affinity=hint(1, preferred=False)) == []
    assert admitted(view, "d1", affinity=hint()) == []


def test_a_device_that_was_held_before_may_have_fallen_ill(view: View) -> None:
    ill = with_a(view, devices={NIC: ("ill",)})
    answer = messages.Admitted(dict(ill.state.pods["uid-a"]))
    assert names(invariants.on_admission(answer, ill, ill, "uid-a")) == []


def test_devices_of_a_resource_without_topology_are_near_everything(view: View) -> None:
    assert admitted(replace(view, devices=(reported(d0=None),)), "d0", affinity=hint(1)) == []


# Affinity


def test_under_policy_none_nobody_has_an_affinity(view: View) -> None:
    config = {**CONFIG, "topologyManagerPolicy": "none"}
    found = names(invariants.on_state(replace(view, config=config)))
    assert found == ["policy-none-has-no-affinity"] * 2


def test_a_single_node_is_one_node(view: View) -> None:
    config = {**CONFIG, "topologyManagerPolicy": "single-numa-node"}
    assert names(invariants.on_state(replace(view, config=config))) == []
    wide = replace(with_a(view, affinity=hint(0, 1)), config=config)
    assert "single-node-is-one" in names(invariants.on_state(wide))


def test_a_preferred_affinity_has_no_more_nodes_than_its_exclusive_cpus_need(view: View) -> None:
    broken = ["preferred-affinity-is-narrowest"]
    wide = with_a(view, affinity=hint(0, 1))
    assert names(invariants.on_state(wide)) == broken
    by_socket = {**CONFIG, "cpuManagerPolicyOptions": {"align-by-socket": "true"}}
    assert names(invariants.on_state(replace(wide, config=by_socket))) == []
    assert names(invariants.on_state(replace(wide, level="admission"))) == []
    # In the pod scope, containers are aligned together.
    twice = pods.pod("uid-a", [container(cpu="3"), container("other")])
    both = {"app": held("1-3", affinity=hint(0, 1)), "other": held("6-7", (), hint(0, 1), ())}
    pair = replace(view, pods={"uid-a": twice}, state=state("0,4-5", a=both))
    assert broken[0] in names(invariants.on_state(pair))
    by_pod = {**CONFIG, "topologyManagerScope": "pod"}
    assert broken[0] not in names(invariants.on_state(replace(pair, config=by_pod)))


def test_under_best_effort_an_affinity_need_not_be_preferred_nor_kept_to(view: View) -> None:
    config = {**CONFIG, "topologyManagerPolicy": "best-effort"}
    loose = replace(with_a(view, affinity=hint(1, preferred=False)), config=config)
    assert names(invariants.on_state(loose)) == []


def test_with_align_by_socket_cpus_are_on_the_sockets_of_the_affinity(view: View) -> None:
    config = {**CONFIG, "cpuManagerPolicyOptions": {"align-by-socket": "true"}}
    one_socket = machines.regular(nodes=2, cores=2, sockets=1, adjacent=True)
    away = with_a(replace(view, config=config), affinity=hint(1), memory=(block(1),))
    assert "cpus-within-affinity" in names(invariants.on_state(away))
    near = replace(away, facts=Facts(one_socket))
    assert "cpus-within-affinity" not in names(invariants.on_state(near))


def test_under_scope_pod_all_containers_have_one_affinity(view: View) -> None:
    config = {**CONFIG, "topologyManagerScope": "pod"}
    init = held(memory=(), affinity=hint(0, 1))
    node = state("0-1,4-7", a={"init": init, "app": held()})
    one = {"uid-a": pod("a", container("init"))}
    two = replace(view, config=config, pods=one, state=node)
    assert "pod-scope-one-affinity" in names(invariants.on_state(two))
    ended = replace(two, ended=frozenset({("uid-a", "init")}))
    assert names(invariants.on_state(ended)) == []


# Changes


def test_memory_and_devices_stay_with_their_container(view: View) -> None:
    other = with_a(view, memory=(block(1),), devices={NIC: ("d2",)})
    assert names(invariants.on_change(view, other)) == ["memory-stays", "devices-stay"]
    config = {**CONFIG, "memoryManagerPolicy": "None"}
    moved = with_a(replace(view, config=config), memory=())
    assert names(invariants.on_change(view, moved)) == []


def test_a_refusal_changes_nobody(view: View) -> None:
    other = with_a(view, affinity=hint(0, 1))
    (found,) = invariants.on_refusal(view, other)
    assert found.invariant == "refusal-changes-nobody"
    assert "uid-a" in found.message


def test_the_state_keeps_what_an_admission_gave(view: View) -> None:
    answer = messages.Admitted({"app": held(memory=(), affinity=hint(1))})
    found = list(invariants.on_admission(answer, None, view, "uid-a"))
    assert names(found)[:2] == ["state-keeps-what-was-answered"] * 2


# Files


def cpu_file(a: str = "2-3", shared: str = "0-1,6-7") -> str:
    entries = {"uid-a": {"app": a}, "uid-b": {"app": "4-5"}}
    return json.dumps({"policyName": "static", "defaultCpuSet": shared, "entries": entries})


def memory_file(*, taken: int = GIB, cells: tuple[int, ...] = (0,), count: int = 1) -> str:
    def table(total: int, system: int, pages: int, reserved: int) -> dict[str, int]:
        left = total - system - pages
        return {
            "total": total,
            "systemReserved": system,
            "allocatable": left,
            "reserved": reserved,
            "free": left - reserved,
        }

    def blocks(node: int) -> list[dict[str, Any]]:
        return [{"numaAffinity": [node], "type": "memory", "size": GIB}]

    machine = {
        "0": {
            "numberOfAssignments": count,
            "memoryMap": {"memory": table(4 * GIB, GIB, 0, taken)},
            "cells": cells,
        },
        "1": {
            "numberOfAssignments": 1,
            "memoryMap": {
                "memory": table(4 * GIB, 0, GIB, GIB),
                PAGES: table(GIB, 0, 0, 0),
            },
            "cells": [1],
        },
    }
    entries = {"uid-a": {"app": blocks(0)}, "uid-b": {"app": blocks(1)}}
    return json.dumps({"policyName": "Static", "machineState": machine, "entries": entries})


def with_files(view: View, **files: str) -> View:
    return replace(view, state=msgspec.structs.replace(view.state, files=files))


@pytest.mark.parametrize(
    ("files", "broken"),
    [
        ({"cpu_manager_state": cpu_file(), "memory_manager_state": memory_file()}, []),
        ({"cpu_manager_state": "{"}, ["cpu-file-readable"]),
        ({"cpu_manager_state": cpu_file(a="2")}, ["cpu-file-says-what-is-held"]),
        ({"cpu_manager_state": cpu_file(shared="0")}, ["cpu-file-says-what-is-held"]),
        ({"memory_manager_state": "[]"}, ["memory-file-readable"]),
        (
            {"memory_manager_state": memory_file(taken=2 * GIB)},
            ["memory-file-reserves-what-is-held"],
        ),
        ({"memory_manager_state": memory_file(cells=(0, 1))}, ["memory-file-counts-blocks"]),
        ({"memory_manager_state": memory_file(count=2)}, ["memory-file-counts-blocks"]),
        (
            {"memory_manager_state": memory_file().replace('"cells": [1]', '"cells": [0]')},
            ["memory-file-counts-blocks"],
        ),
        (
            {"memory_manager_state": memory_file().replace('"free": 2147', '"free": 3147', 1)},
            ["memory-file-adds-up"],
        ),
        (
            {"memory_manager_state": memory_file().replace('"uid-a"', '"uid-gone"')},
            ["memory-file-says-what-is-held"] * 2,
        ),
    ],
)
def test_files_say_what_the_state_says_and_add_up(
    view: View, files: dict[str, str], broken: list[str]
) -> None:
    written = with_files(view, **files)
    assert names(invariants.on_state(written)) == broken
    # Of a file of two parts, the second is looked at.
    second = {name: json.dumps({"policyName": 7, "data": text}) for name, text in files.items()}
    assert names(invariants.on_state(with_files(view, **second))) == broken
    # Whoever does not claim the files may write others.
    assert names(invariants.on_state(replace(written, level="placement"))) == []


def test_reservations_since_a_pod_came_again_have_a_name_of_their_own(view: View) -> None:
    written = with_files(view, memory_manager_state=memory_file(taken=2 * GIB))
    # The pod was refused then: the file does not list it, and the nodes lack what it gave back.
    returned = replace(written, returned=frozenset({"uid-refused"}))
    assert names(invariants.on_state(returned)) == ["memory-file-reserves-for-returned-pods"]
