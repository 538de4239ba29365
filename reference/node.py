"""The node: all managers together, one call at a time, as the protocol has it.

A `Node` is what a started kubelet keeps between calls. Its methods take and give protocol
messages; `Reference` stands before it and turns every error into its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.errors import AdmissionError, NotBuiltError
from numaproof.reference.pods.pod import PodError
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import to_messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.reference.cpu.manager import CPUManager
    from numaproof.reference.devices.manager import DeviceManager
    from numaproof.reference.manager import Manager
    from numaproof.reference.memory.manager import MemoryManager
    from numaproof.reference.memory.state import Block
    from numaproof.reference.plan import Plan
    from numaproof.reference.pods.containers import Container
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.policy import KeptHint

MOST_NODES = 12
"""Hints name every set of nodes, which doubles with each node."""


class Node:
    """A started node; its parts change only in these methods.

    `plan` is what the start decided, `pods` those on the node in the order of their arrival;
    `told` the CPUs that the container runtime knows, `ended` the containers of pods on the node
    that run no longer, and `affinity` what the Topology Manager keeps, all by pod uid and
    container name.
    """

    def __init__(
        self,
        plan: Plan,
        devices: DeviceManager,
        cpus: CPUManager,
        memory: MemoryManager,
        present: tuple[Pod, ...],
    ) -> None:
        """Takes what `numaproof.reference.startup` made."""
        self.plan = plan
        self.device_manager = devices
        self.cpus = cpus
        self.memory = memory
        self.pods = {pod.uid: pod for pod in present}
        self.told: dict[tuple[str, str], int] = {}
        self.ended: set[tuple[str, str]] = set()
        self.affinity: dict[tuple[str, str], KeptHint] = {}

    @property
    def providers(self) -> tuple[Manager[Any], ...]:
        """The hint providers in the order in which the Topology Manager asks them."""
        return (self.device_manager, self.cpus, self.memory)

    def started(self) -> messages.Started:
        """All CPUs, the allocatable ones, and the allocatable memory."""
        cpu, memory = self.plan.cpu, self.plan.memory
        allocatable = CPUSet.from_mask(cpu.allocatable if cpu else 0)
        return messages.Started(
            messages.StartedCPUs(self.plan.topology.all_cpus, allocatable),
            _blocks(memory.allocatable if memory else ()),
        )

    def admit(self, args: messages.AdmitArgs) -> messages.Admitted:
        """Asks the Topology Manager, which lets every provider allocate.

        Raises:
            AdmissionError: a container cannot have what it is due. What its pod's earlier
                containers got is reclaimed with the next call.
        """
        pod = self.plan.read_pod(args.pod)
        self.pods[pod.uid] = pod
        self.reclaim(self._concerned(pod))

        def keep(container: Container, affinity: KeptHint) -> None:
            self.affinity[pod.uid, container.name] = affinity

        try:
            scope.admit(self.plan.topology_policy, self.plan.scope, self.providers, pod, keep)
        except AdmissionError:
            self._drop(pod.uid)
            raise
        finally:
            self.save()
        return messages.Admitted(self._containers(pod))

    def _concerned(self, pod: Pod) -> tuple[Manager[Any], ...]:
        """The managers that the admission of a pod comes to.

        Without hints the Device Manager hears only of pods that ask for devices.
        """
        hinted = self.plan.topology_policy is not None
        if hinted or self.device_manager.serves(pod):
            return self.providers
        return (self.cpus, self.memory)

    def save(self) -> None:
        """Writes the checkpoints that changed."""
        for provider in self.providers:
            provider.save()

    def reclaim(self, providers: Iterable[Manager[Any]]) -> None:
        """Takes back what containers hold that no pod on the node has."""
        for provider in providers:
            provider.reclaim(self.pods)
        present = {(pod.uid, one.name) for pod in self.pods.values() for one in pod.containers}
        self.told = {place: cpus for place, cpus in self.told.items() if place in present}

    def remove(self, args: messages.RemoveArgs) -> messages.Done:
        """Takes the pod, or one of its containers, off the node."""
        if args.container is None:
            self._drop(args.uid)
            self.reclaim(self.providers)
        else:
            pod = self.pods.get(args.uid)
            if pod is None:
                raise PodError(f"no pod {args.uid!r} is on the node")
            pod.container(args.container)
            place = (args.uid, args.container)
            self.ended.add(place)
            for provider in self.providers:
                provider.end(*place)
            self.told.pop(place, None)
            self.affinity.pop(place, None)
        self.save()
        return messages.Done()

    def _drop(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.ended = {place for place in self.ended if place[0] != uid}
        self.affinity = {place: kept for place, kept in self.affinity.items() if place[0] != uid}

    def devices(self, args: messages.DevicesArgs) -> messages.Done:
        """Takes what device plugins report."""
        self.device_manager.report(args.devices)
        self.save()
        return messages.Done()

    def hints(self, args: messages.HintsArgs) -> messages.NodeHints:
        """The hints that each provider would give for a container, or for the pod."""
        pod = self.plan.read_pod(args.pod)
        container = None if args.container is None else pod.container(args.container)
        self.reclaim(self.providers)
        self.save()
        _check_countable(self.plan.nodes)

        def of(provider: Manager[Any]) -> messages.ProviderHints:
            return to_messages(provider.hints(pod, container))

        return messages.NodeHints(
            of(self.cpus),
            of(self.memory),
            of(self.device_manager) if self.device_manager.has_plugins else None,
        )

    def state(self, _args: messages.NoArgs) -> messages.State:
        """What everything on the node holds, and the checkpoint files as they are."""
        self.reclaim(self.providers)
        self.save()
        return messages.State(
            shared=CPUSet.from_mask(self.cpus.state.shared),
            pods={uid: self._containers(pod) for uid, pod in self.pods.items()},
            files=self.plan.files(),
        )

    def _containers(self, pod: Pod) -> messages.Containers:
        return {
            container.name: self._container(pod.uid, container.name) for container in pod.containers
        }

    def _container(self, uid: str, name: str) -> messages.Container:
        kept = self.affinity.get((uid, name), scope.NO_AFFINITY)
        cpus = self.cpus.state
        return messages.Container(
            cpus=CPUSet.from_mask(cpus.where(uid, name)),
            exclusive=CPUSet.from_mask(cpus.of(uid, name) or 0),
            memory=_blocks(self.memory.state.of(uid, name) or ()),
            affinity=messages.Hint(kept.numa, kept.preferred),
            devices=self.device_manager.held(uid, name),
        )

    def reconcile(self, _args: messages.NoArgs) -> messages.Reconciled:
        """Tells the container runtime every CPU set that it does not know yet."""
        self.reclaim([self.cpus])
        self.save()
        updates = []
        for pod in self.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                cpus = self.cpus.state.where(*place)
                if cpus and place not in self.ended and self.told.get(place) != cpus:
                    self.told[place] = cpus
                    updates.append(
                        messages.CPUUpdate(pod.uid, container.name, CPUSet.from_mask(cpus))
                    )
        return messages.Reconciled(tuple(updates))


def _blocks(blocks: Iterable[Block]) -> tuple[messages.MemoryBlock, ...]:
    return tuple(
        messages.MemoryBlock(NUMASet.from_mask(block.nodes), block.kind, block.size)
        for block in blocks
    )


def _check_countable(nodes: tuple[int, ...]) -> None:
    if len(nodes) > MOST_NODES:
        raise NotBuiltError(f"hints for more than {MOST_NODES} NUMA nodes")
    if min(nodes, default=0) < 0:
        raise NotBuiltError("hints for NUMA nodes with negative ids")
