"""The node: all managers together, one call at a time, as the protocol has it.

A `Node` is what a started kubelet keeps between calls. Its methods take and give protocol
messages; `Reference` stands before it and turns every error into its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.policy import SMTAlignmentError
from numaproof.reference.cpu.state import CPUState, Reuse
from numaproof.reference.errors import AdmissionError, NotBuiltError
from numaproof.reference.kubernetes import pods

if TYPE_CHECKING:
    from numaproof.reference.cpu.policy import StaticPolicy
    from numaproof.reference.machine.topology import CPUTopology
    from numaproof.reference.plan import Plan

MOST_NODES = 12
"""Hints name every set of nodes, which doubles with each node."""

NO_AFFINITY = messages.Hint(None, preferred=False)
"""What the Topology Manager's policy none keeps for every container."""


class Node:
    """A started node; its parts change only in these methods.

    `plan` is what the start decided, `cpus` the CPU Manager's state, `pods` those on the node in
    the order of their arrival, `told` the CPUs that the container runtime knows by pod uid and
    container name, and `ended` the containers of pods on the node that run no longer.
    """

    def __init__(self, plan: Plan, cpus: CPUState, present: tuple[pods.Pod, ...]) -> None:
        """Takes what `numaproof.reference.startup` made."""
        self.plan = plan
        self.cpus = self._saved = cpus
        self.reuse = Reuse()
        self.pods = {pod.uid: pod for pod in present}
        self.told: dict[tuple[str, str], int] = {}
        self.ended: set[tuple[str, str]] = set()

    def started(self) -> messages.Started:
        """All CPUs and the allocatable ones."""
        policy = self.plan.policy
        allocatable = policy.allocatable if policy else 0
        return messages.Started(
            messages.StartedCPUs(self.plan.topology.all_cpus, CPUSet.from_mask(allocatable)), ()
        )

    def admit(self, args: messages.AdmitArgs) -> messages.Admitted:
        """Allocates for each container in turn.

        Raises:
            AdmissionError: a container cannot have what it is due. What its pod's earlier
                containers got is reclaimed with the next call.
        """
        pod = self.plan.read_pod(args.pod)
        self.pods[pod.uid] = pod
        self.reclaim()
        try:
            for container in pod.containers:
                self._allocate(pod, container)
        except AdmissionError:
            self._drop(pod.uid)
            raise
        finally:
            self.save()
        return messages.Admitted(self._containers(pod))

    def _allocate(self, pod: pods.Pod, container: pods.Container) -> None:
        policy = self.plan.policy
        if policy is None:
            return
        try:
            cpus, self.reuse = policy.allocate(self.cpus, self.reuse, pod, container, None)
        except SMTAlignmentError as error:
            raise AdmissionError("SMTAlignmentError", str(error)) from None
        except (NotEnoughCPUsError, AccountingError) as error:
            raise AdmissionError(
                "UnexpectedAdmissionError",
                f"Allocate failed due to {error}, which is unexpected",
            ) from None
        self.cpus = cpus

    def save(self) -> None:
        """Writes the checkpoint if anything changed since it was last written.

        The kubelet writes it at every change; between two calls nobody can tell.
        """
        if self.cpus is not self._saved:
            self.plan.write_cpus(self.cpus)
            self._saved = self.cpus

    def reclaim(self) -> None:
        """Takes back what containers hold that no pod on the node has."""
        cpus = self.cpus
        for uid, name, _ in tuple(cpus):
            pod = self.pods.get(uid)
            if pod is None or all(container.name != name for container in pod.containers):
                cpus = cpus.release(uid, name)
                self.told.pop((uid, name), None)
        self.cpus = cpus

    def remove(self, args: messages.RemoveArgs) -> messages.Done:
        """Takes the pod, or one of its containers, off the node."""
        if args.container is None:
            self._drop(args.uid)
            self.reclaim()
        else:
            pod = self.pods.get(args.uid)
            if pod is None:
                raise pods.PodError(f"no pod {args.uid!r} is on the node")
            pod.container(args.container)
            self.ended.add((args.uid, args.container))
            self.cpus = self.cpus.release(args.uid, args.container)
            self.told.pop((args.uid, args.container), None)
        self.save()
        return messages.Done()

    def _drop(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.ended = {(owner, name) for owner, name in self.ended if owner != uid}

    def hints(self, args: messages.HintsArgs) -> messages.NodeHints:
        """The hints that each provider would give for a container, or for the pod."""
        pod = self.plan.read_pod(args.pod)
        policy = self.plan.policy
        self.reclaim()
        self.save()
        if policy is None:
            return messages.NodeHints({}, {})
        _check_countable(self.plan.topology)
        return messages.NodeHints(self._cpu_hints(policy, pod, args.container), {})

    def _cpu_hints(
        self, policy: StaticPolicy, pod: pods.Pod, name: str | None
    ) -> messages.ProviderHints:
        if name is None:
            return cpu_hints.for_pod(policy, self.cpus, self.reuse, pod)
        return cpu_hints.for_container(policy, self.cpus, self.reuse, pod, pod.container(name))

    def state(self, _args: messages.NoArgs) -> messages.State:
        """What everything on the node holds, and the checkpoint files as they are."""
        self.reclaim()
        self.save()
        return messages.State(
            shared=CPUSet.from_mask(self.cpus.shared),
            pods={uid: self._containers(pod) for uid, pod in self.pods.items()},
            files=self.plan.files(),
        )

    def _containers(self, pod: pods.Pod) -> messages.Containers:
        return {
            container.name: messages.Container(
                cpus=CPUSet.from_mask(self.cpus.where(pod.uid, container.name)),
                exclusive=CPUSet.from_mask(self.cpus.of(pod.uid, container.name) or 0),
                memory=(),
                affinity=NO_AFFINITY,
            )
            for container in pod.containers
        }

    def reconcile(self, _args: messages.NoArgs) -> messages.Reconciled:
        """Tells the container runtime every CPU set that it does not know yet."""
        self.reclaim()
        self.save()
        updates = []
        for pod in self.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                cpus = self.cpus.where(*place)
                if cpus and place not in self.ended and self.told.get(place) != cpus:
                    self.told[place] = cpus
                    updates.append(
                        messages.CPUUpdate(pod.uid, container.name, CPUSet.from_mask(cpus))
                    )
        return messages.Reconciled(tuple(updates))


def _check_countable(topology: CPUTopology) -> None:
    if len(topology.nodes) > MOST_NODES:
        raise NotBuiltError(f"hints for more than {MOST_NODES} NUMA nodes with CPUs")
    if min(topology.nodes, default=0) < 0:
        raise NotBuiltError("hints for NUMA nodes with negative ids")
