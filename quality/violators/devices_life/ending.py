"""Violators of what becomes of devices at removals, restarts and refusals, one sentence each."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import devices as checkpoint
from numaproof.reference.devices import policy
from numaproof.reference.devices.policy import DeviceError
from numaproof.reference.devices.state import NONE, DeviceState, all_held
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("devices-life")


# Removal


def _freed(changes: Changes, some: Callable[[Any], Any]) -> None:
    """Lets a pod that is gone free `some` of the devices that its containers held."""

    def release(original: Any, self: DeviceState, uid: str, name: str) -> Any:
        after = original(self, uid, name)
        free = all_held({uid: some(self.held[uid])})
        taken = {name: ids - free.get(name, NONE) for name, ids in self.taken.items()}
        return dataclasses.replace(after, taken=taken)

    changes.around(DeviceState, "release", release)


@seeds("DEV-REMOVE-001")
def removed_pods_free_only_the_first_resource_of_a_container(changes: Changes) -> None:
    """A plausible author returns from the loop over resources too early."""
    _freed(
        changes,
        lambda pod: {
            name: {resource: mine[resource] for resource in sorted(mine)[:1]}
            for name, mine in pod.items()
        },
    )


@seeds("DEV-REMOVE-001")
def removed_pods_free_only_the_devices_of_their_last_container(changes: Changes) -> None:
    """A plausible author keeps one set of devices for each pod, which containers overwrite."""
    _freed(changes, lambda pod: dict(list(pod.items())[-1:]))


def _given_back(node: StartedNode, uid: str, *names: str) -> None:
    """Takes the devices back from these containers of a pod that is on the node."""
    state = node.device_manager.state
    pod = {name: mine for name, mine in state.held.get(uid, {}).items() if name not in names}
    held = {**state.held, uid: pod}
    node.device_manager.state = dataclasses.replace(state, held=held, taken=all_held(held))


def _ended(changes: Changes, returns: Callable[[StartedNode, Any, str], tuple[str, ...]]) -> None:
    """Lets these containers of a pod give their devices back when one has ended."""

    def remove(original: Any, self: StartedNode, args: Any) -> Any:
        done = original(self, args)
        if args.container is not None:
            names = returns(self, self.pods[args.uid], args.container)
            if names:
                _given_back(self, args.uid, *names)
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("DEV-REMOVE-002")
def sidecars_give_their_devices_back_when_they_end(changes: Changes) -> None:
    """A plausible author finds that nobody reuses a sidecar's devices, and frees them."""
    _ended(changes, lambda _, pod, name: (name,) if pod.container(name).sidecar else ())


@seeds("DEV-REMOVE-002")
def devices_of_a_pod_are_free_once_all_its_containers_have_ended(changes: Changes) -> None:
    """A plausible author takes a pod whose containers have all ended for one that is gone."""

    def returns(node: StartedNode, pod: Any, _: str) -> tuple[str, ...]:
        names = tuple(container.name for container in pod.containers)
        return names if all((pod.uid, name) in node.ended for name in names) else ()

    _ended(changes, returns)


_LOST = "lost/"
"""Begins the uids under which the devices are kept that nobody takes back."""


def _lose(node: StartedNode, uid: str) -> None:
    """Leaves what the pod has allocated for good."""
    state = node.device_manager.state
    held = dict(state.held)
    mine = held.pop(uid, None)
    if mine:
        held[_LOST + uid] = mine
        node.device_manager.state = dataclasses.replace(state, held=held)


def _never_reclaimed(changes: Changes) -> None:
    changes.around(
        DeviceState,
        "release",
        lambda original, self, uid, name: (
            self if uid.startswith(_LOST) else original(self, uid, name)
        ),
    )


def _rejected(changes: Changes, leaks: Callable[[AdmissionError], bool]) -> None:
    """Lets devices stay allocated for pods that are rejected so."""

    def admit(original: Any, self: StartedNode, args: Any) -> Any:
        try:
            return original(self, args)
        except AdmissionError as error:
            if leaks(error):
                _lose(self, args.pod["metadata"]["uid"])
            raise

    changes.around(StartedNode, "admit", admit)
    _never_reclaimed(changes)


@seeds("DEV-REMOVE-003")
def pods_that_lack_memory_leave_their_devices_allocated(changes: Changes) -> None:
    """A plausible author undoes what the CPU Manager refuses, and forgets the Memory Manager."""
    _rejected(changes, lambda error: "[memorymanager]" in str(error))


@seeds("DEV-REMOVE-003")
def pods_without_common_nodes_leave_devices_of_earlier_containers(changes: Changes) -> None:
    """A plausible author expects nothing to be allocated when the Topology Manager rejects."""
    _rejected(changes, lambda error: error.reason == "TopologyAffinityError")


# Restart


def _restored(changes: Changes, keep: Callable[[Any], Any]) -> None:
    """Lets a restart keep of each pod's devices only these."""

    def load(original: Any, content: bytes | None) -> Any:
        found = original(content)
        held = {uid: keep(pod) for uid, pod in found.held.items()}
        return dataclasses.replace(found, held=held, taken=all_held(held))

    changes.around(checkpoint, "load", load)


@seeds("DEV-RESTART-001")
def restarts_keep_the_devices_of_one_container_of_a_pod(changes: Changes) -> None:
    """A plausible author reads the file into a map by pod, which containers overwrite."""
    _restored(changes, lambda pod: dict(list(pod.items())[-1:]))


@seeds("DEV-RESTART-001")
def restarts_keep_one_resource_of_a_container(changes: Changes) -> None:
    """A plausible author reads the file into a map by container, which resources overwrite."""
    _restored(
        changes, lambda pod: {name: dict(list(mine.items())[-1:]) for name, mine in pod.items()}
    )


@seeds("DEV-RESTART-004")
def restored_devices_come_without_their_affinity(changes: Changes) -> None:
    """A plausible author asks for no hints where a container has its devices already."""

    def admit(original: Any, policy: Any, name: str, providers: Any, pod: Any, keep: Any) -> None:
        before = providers[0].state

        def forget(container: Any, affinity: Any) -> None:
            held = before.of(pod.uid, container.name)
            keep(container, NO_AFFINITY if held else affinity)

        original(policy, name, providers, pod, forget)

    changes.around(scope, "admit", admit)


@seeds("DEV-RESTART-002")
def devices_of_pods_gone_at_a_restart_stay_allocated(changes: Changes) -> None:
    """A plausible author frees devices when a pod is removed, which nobody saw here."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        node = original(args, *rest)
        for uid in sorted(set(node.device_manager.state.held) - set(node.pods)):
            _lose(node, uid)
        return node

    changes.around(startup, "start", start)
    _never_reclaimed(changes)


# Refusals


def _says(changes: Changes, text: str, change: Callable[[Any, Any, Any], str]) -> None:
    """Lets a refusal that matches `text` say what `change` makes of match, state and request."""

    def allocate_resource(original: Any, state: Any, request: Any, near: Any) -> Any:
        try:
            return original(state, request, near)
        except DeviceError as error:
            found = re.search(text, str(error))
            if found is None:
                raise
            raise DeviceError(change(found, state, request), error.state) from None

    changes.around(policy, "allocate_resource", allocate_resource)


_SHORT = r"Requested: (\d+), Available: (\d+)"


@seeds("DEV-ERROR-001")
def device_shortages_tell_the_whole_request(changes: Changes) -> None:
    """A plausible author tells what the container asks for, not what it lacks beside reuse."""

    def change(found: Any, _: Any, request: Any) -> str:
        start = found.string[: found.start()]
        return f"{start}Requested: {request.amount}, Available: {found[2]}"

    _says(changes, _SHORT, change)


@seeds("DEV-ERROR-002")
def changed_device_requests_tell_the_numbers_the_wrong_way_round(changes: Changes) -> None:
    """A plausible author swaps what is asked for and what is held."""
    _says(
        changes,
        r"from (\d+) to (\d+)$",
        lambda found, *_: f"{found.string[: found.start()]}from {found[2]} to {found[1]}",
    )


@seeds("DEV-ERROR-003")
def held_devices_that_fell_ill_are_told_as_no_healthy_devices(changes: Changes) -> None:
    """A plausible author has one message for everything that health is the cause of."""
    _says(
        changes,
        "no longer healthy",
        lambda _, __, request: (
            f"no healthy devices present; cannot allocate unhealthy devices {request.resource}"
        ),
    )
