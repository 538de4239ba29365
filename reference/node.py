"""The node: all managers together, handling one protocol call at a time.

A `StartedNode` is the state that a kubelet keeps between calls. Its methods take and return
protocol messages; `Reference` turns their errors into answers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.capacity.preemption import MESSAGE, REASON, is_critical
from numaproof.reference.choices import NO_CHOICES
from numaproof.reference.errors import AdmissionError, UnsupportedError
from numaproof.reference.metrics import ALIGNED, NOT_ALIGNED, keep_known
from numaproof.reference.operations import to_messages
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.reference.topology import scope
from numaproof.reference.topology.hints import NO_AFFINITY
from numaproof.reference.topology.policy import SINGLE_NUMA_NODE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numaproof.reference.capacity.allocatable import Allocatable, Shortage
    from numaproof.reference.capacity.preemption import Preemption
    from numaproof.reference.config.quota import Quotas
    from numaproof.reference.cpu.manager import CPUManager
    from numaproof.reference.cpu.policy import StaticCPUPolicy
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.devices.manager import DeviceManager
    from numaproof.reference.manager import Manager, Occasion
    from numaproof.reference.memory.manager import MemoryManager
    from numaproof.reference.memory.policy import StaticMemoryPolicy
    from numaproof.reference.memory.state import Block
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.pod_level import PodLevel, PodRules
    from numaproof.reference.resize import Resizing
    from numaproof.reference.topology.hints import TopologyHint
    from numaproof.reference.topology.policy import TopologyPolicy
    from numaproof.reference.topology.scope import Provider

MAX_ENUMERABLE_NODES = 12
"""Hints enumerate all sets of nodes, whose number doubles with every node."""


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """The results of a start, which stay the same while the node runs.

    `nodes` are the ids of the NUMA nodes in the machine's order. `cpu`, `memory` and
    `topology_policy` are None for the ``none`` policy; `scope` is the Topology Manager's scope.
    `pod_level` handles pod-level resources, and `pod_rules` reads them. `metrics` are the names of
    the release's metrics. `resizing` decides about resizes in place. `effective_config` is the
    configuration in effect, if the start requested it; `include` names the optional fields in
    answers. `allocatable` is None if pods need not fit into the node's allocatable resources;
    `preemption` chooses the pods that make room for critical ones.
    """

    nodes: tuple[int, ...]
    topology: CPUTopology
    cpu_policy: str
    cpu: StaticCPUPolicy | None
    memory_policy: str
    memory: StaticMemoryPolicy | None
    topology_policy: TopologyPolicy | None
    scope: str
    pod_level: PodLevel
    pod_rules: type[PodRules]
    quotas: Quotas
    resizing: Resizing
    preemption: Preemption
    allocatable: Allocatable | None = None
    metrics: frozenset[str] = frozenset()
    effective_config: messages.InForce | None = None
    include: frozenset[messages.Told] = frozenset()


class StartedNode:
    """A started node.

    `pods` are the pods on the node in order of arrival; those in `awaited_pods` have not been
    admitted again since the start. `counts` are metrics that count admissions. `runtime_cpus` are
    the CPUs last sent to the container runtime, `ended_containers` are the ended containers of pods
    on the node, and `affinity` has the Topology Manager's results; all are keyed by pod uid and
    container name.
    `admitted` are the uids of the pods admitted since the start. `choices` are preferred to
    equally good ones.
    """

    def __init__(
        self,
        setup: NodeSetup,
        devices: DeviceManager,
        cpus: CPUManager,
        memory: MemoryManager,
        present: tuple[Pod, ...],
    ) -> None:
        self.setup = setup
        self.device_manager = devices
        self.cpus = cpus
        self.memory = memory
        self.pods = {pod.uid: pod for pod in present}
        self.runtime_cpus: dict[tuple[str, str], int] = {}
        self.ended_containers: set[tuple[str, str]] = set()
        self.affinity: dict[tuple[str, str], TopologyHint] = {}
        self.counts: Counter[str] = Counter()
        self.awaited_pods = {*self.pods}
        self.admitted: set[str] = set()
        self.choices = NO_CHOICES
        self._outcomes: dict[str, AdmissionError | tuple[messages.PreemptedPod, ...]] = {}

    @property
    def providers(self) -> tuple[Manager[Any], ...]:
        """The hint providers, in the Topology Manager's order.

        Requirements: TOPO-ORDER-002.
        """
        return (self.device_manager, self.cpus, self.memory)

    def read_pod(self, manifest: messages.Pod) -> Pod:
        """Reads a pod's manifest according to this node's rules.

        Raises:
            PodError: the manifest is not a pod.
        """
        return read_pod(manifest, self.setup.pod_level, self.setup.pod_rules)

    def start_answer(self) -> messages.Started:
        """Returns the answer to the start: all CPUs, and the allocatable CPUs and memory.

        Requirements: CPU-NONE-005.
        """
        cpu, memory = self.setup.cpu, self.setup.memory
        allocatable = CPUSet.from_mask(cpu.allocatable if cpu else 0)
        return messages.Started(
            messages.StartedCPUs(self.setup.topology.all_cpus, allocatable),
            _blocks(memory.allocatable if memory else ()),
            self.setup.effective_config,
        )

    def admit(self, args: messages.AdmitArgs) -> messages.Admitted:
        """Admits a pod: the Topology Manager makes every manager allocate resources to it.

        After that, the pod must fit into the node's allocatable resources, if the start asked for
        this.

        Raises:
            AdmissionError: a container does not get its resources, or the node has no room. All
                resources of the pod are released at the next call.

        Requirements: CPU-OPT-FULLPCPUS-005, CPU-REMOVE-003, NODE-ALLOC-008, NODE-RESTART-004,
        TOPO-ORDER-003.
        """
        pod = self.read_pod(args.pod)
        if pod.uid in self._outcomes:
            outcome = self._outcomes.pop(pod.uid)
            if isinstance(outcome, AdmissionError):
                raise outcome
            return messages.Admitted(self._containers(pod), outcome)
        self.pods[pod.uid] = pod
        self.remove_stale_state("admission", self._managers_for(pod))
        try:
            preempted = self._allocate(pod)
        finally:
            self.save()
        return messages.Admitted(self._containers(pod), preempted)

    def _allocate(self, pod: Pod) -> tuple[messages.PreemptedPod, ...]:
        self.awaited_pods.discard(pod.uid)
        try:
            self.choices.check_refusal()
            self._align(self.providers, pod)
            preempted = self._make_room(pod)
        except AdmissionError:
            self.drop(pod.uid)
            raise
        self.admitted.add(pod.uid)
        return preempted

    def shortages(self, pod: Pod) -> tuple[Shortage, ...]:
        """Returns what the node lacks for a pod; nothing if the start asked for no such check.

        Requirements: NODE-ALLOC-014.
        """
        if self.setup.allocatable is None:
            return ()
        return tuple(self.setup.allocatable.shortages(pod, self._others(pod)))

    def _others(self, pod: Pod) -> list[Pod]:
        """The other pods admitted since the start."""
        others = self.admitted - {pod.uid}
        return [one for uid, one in self.pods.items() if uid in others]

    def _make_room(self, pod: Pod) -> tuple[messages.PreemptedPod, ...]:
        """Checks that the node has room for a pod; for a critical one, evicts others.

        Raises:
            AdmissionError: the node has no room.

        Requirements: NODE-ALLOC-009, NODE-ALLOC-013, NODE-ALLOC-015.
        """
        shortages = self.shortages(pod)
        if not shortages:
            return ()
        if not is_critical(pod):
            raise AdmissionError(shortages[0].reason, str(shortages[0]))
        victims = self.setup.preemption.victims(pod, self._others(pod), shortages)
        for one in victims:
            self.drop(one.uid)
        self.remove_stale_state("now")
        return tuple(messages.PreemptedPod(one.uid, REASON, MESSAGE) for one in victims)

    def resume(self, running: Mapping[str, Collection[str]]) -> None:
        """Admits all pods after a restart of the kubelet alone, which containers don't notice.

        The pods are one batch. Until it is complete, the kubelet doesn't know all pods, so it
        releases nothing. `running` has the names of the containers that run, by pod uid; all other
        containers of these pods have ended.

        Requirements: NODE-END-001, NODE-END-002, NODE-RESTART-003, NODE-RESTART-004,
        NODE-RESTART-005, NODE-RESTART-006.
        """
        self.device_manager.resume(running)
        for pod in self.pods.values():
            for container in pod.containers:
                if container.name not in running.get(pod.uid, (container.name,)):
                    self._complete(pod, container)
        for pod in tuple(self.pods.values()):
            try:
                self._outcomes[pod.uid] = self._allocate(pod)
            except AdmissionError as error:
                self._outcomes[pod.uid] = error
        self.device_manager.running = {}
        self.remove_stale_state("now")
        self.save()

    def _count_admission(self, aligned_count: int, error: AdmissionError | None = None) -> None:
        """Counts an admission; `aligned_count` is the number of containers with an affinity.

        Under the ``none`` policy, nothing has to be aligned, so no error is counted.

        Requirements: NODE-METRIC-006, NODE-METRIC-007.
        """
        policy, by_pod = self.setup.topology_policy, self.setup.scope == "pod"
        self.counts["topology_manager_admission_requests_total"] += 1
        self.counts["topology_manager_admission_errors_total"] += bool(policy and error)
        if policy is None or policy.name != SINGLE_NUMA_NODE:
            return
        labels = f"{{boundary=numa_node,scope={self.setup.scope}}}"
        is_misaligned = error is not None and error.reason == "TopologyAffinityError"
        failed_later = error is not None and not is_misaligned
        aligned = error is None if by_pod else aligned_count - failed_later
        self.counts[ALIGNED + labels] += aligned
        self.counts[NOT_ALIGNED + labels] += is_misaligned

    def _align(self, providers: Sequence[Provider], pod: Pod) -> None:
        aligned_count = 0
        choices, decisions = self.choices.of_pod(pod.uid), self.choices.decisions
        if decisions is not None:
            decisions.begin()
        # Without hints, it doesn't matter which CPUs and devices a container gets.
        aligned = decisions if self.setup.topology_policy is not None else None
        self.device_manager.first_choice = choices.devices
        self.device_manager.decisions = aligned
        if self.choices.only_devices:
            aligned = decisions = None
        self.cpus.prefer(choices.cpus, aligned)
        self.memory.prefer(choices.memory, decisions)

        def keep(container: PodContainer, affinity: TopologyHint) -> None:
            nonlocal aligned_count
            aligned_count += 1
            self.affinity[pod.uid, container.name] = affinity

        try:
            policy = self.setup.topology_policy
            policy = policy and policy.preferring(choices.affinity, aligned)
            scope.admit(policy, self.setup.scope, providers, pod, keep)
        except AdmissionError as error:
            self._count_admission(aligned_count, error)
            raise
        self._count_admission(aligned_count)

    def resize(self, args: messages.ResizeArgs) -> messages.Admitted:
        """Gives a pod the resources that it now requests, or leaves it unchanged.

        Raises:
            AdmissionError: the resize is infeasible, or deferred because a manager refuses it.
            PodError: the pod isn't on the node, or the resize changes its containers.
            UnsupportedError: the node doesn't resize pods, or not this one.

        Requirements: NODE-RESIZE-001, NODE-RESIZE-002, NODE-RESIZE-003, NODE-RESIZE-004,
        NODE-RESIZE-005, NODE-RESIZE-006.
        """
        target = self.read_pod(args.pod)
        allocated = self.pods.get(target.uid)
        if allocated is None:
            raise PodError(f"no pod {target.uid!r} is on the node")
        if self.setup.allocatable is not None:
            raise UnsupportedError("resizing pods on a node that is checked for capacity")
        resizing = self.setup.resizing
        if resizing.is_change(allocated, target):
            resizing.check(allocated, target)
            self.remove_stale_state("admission")
            try:
                self._align(resizing.providers(self.providers), target)
            except AdmissionError as error:
                raise AdmissionError("Deferred", str(error)) from None
            finally:
                self.save()
            self.pods[target.uid] = target
        return messages.Admitted(self._containers(target))

    def rejected_pod_status(self, error: AdmissionError) -> messages.RefusedPod | None:
        """Returns the status of a refused pod if the start requested it, otherwise None.

        Requirements: NODE-REFUSED-002, NODE-REFUSED-003.
        """
        if "refused-pods" not in self.setup.include:
            return None
        text = str(error)
        return messages.RefusedPod("Failed", error.reason, f"Pod was rejected: {text}", text)

    def _managers_for(self, pod: Pod) -> tuple[Manager[Any], ...]:
        """The managers that take part in an admission.

        Without hints, the Device Manager is involved only if the pod requests devices.
        """
        hinted = self.setup.topology_policy is not None
        if hinted or self.device_manager.serves(pod):
            return self.providers
        return (self.cpus, self.memory)

    def adopt(self, other: StartedNode) -> None:
        """Takes over another node's pods, allocations and reservations, but not its rules."""
        self.pods, self.runtime_cpus = dict(other.pods), dict(other.runtime_cpus)
        self.ended_containers, self.affinity = set(other.ended_containers), dict(other.affinity)
        self.admitted, self._outcomes = set(other.admitted), dict(other._outcomes)
        self.device_manager.adopt(other.device_manager)
        self.cpus.adopt(other.cpus)
        self.memory.adopt(other.memory)
        self.counts, self.awaited_pods = Counter(other.counts), set(other.awaited_pods)
        self.setup = replace(self.setup, cpu=self.cpus.policy, memory=self.memory.policy)

    def save(self) -> None:
        """Writes the checkpoints that have changed.

        Requirements: CPU-CHECKPOINT-002.
        """
        for provider in self.providers:
            provider.save()

    def remove_stale_state(
        self, when: Occasion, providers: Iterable[Manager[Any]] | None = None
    ) -> None:
        """Makes managers (all by default) release the resources of pods no longer on the node.

        Requirements: CPU-RECONCILE-005, CPU-REMOVE-003.
        """
        for provider in self.providers if providers is None else providers:
            provider.remove_stale_state(self.pods, when)
        present = {(pod.uid, one.name) for pod in self.pods.values() for one in pod.containers}
        self.runtime_cpus = {
            place: cpus for place, cpus in self.runtime_cpus.items() if place in present
        }

    def remove(self, args: messages.RemoveArgs) -> messages.Done:
        """Removes the pod or one of its containers from the node."""
        if args.container is None:
            self.drop(args.uid)
            self.remove_stale_state("now")
        else:
            pod = self.pods.get(args.uid)
            if pod is None:
                return messages.Done()
            pod.container(args.container)
            place = (args.uid, args.container)
            self.ended_containers.add(place)
            for provider in self.providers:
                provider.end(*place)
            self.runtime_cpus.pop(place, None)
            self.affinity.pop(place, None)
        self.save()
        return messages.Done()

    def end(self, args: messages.EndArgs) -> messages.Done:
        """Lets a container end by itself; a pod whose app containers have all ended leaves.

        Requirements: NODE-END-001, NODE-END-002.
        """
        pod = self.pods.get(args.uid)
        if pod is None:
            raise PodError(f"no pod {args.uid!r} is on the node")
        self._complete(pod, pod.container(args.container))
        apps = {(pod.uid, one.name) for one in pod.containers if not one.init}
        if apps <= self.ended_containers:
            self.drop(pod.uid)
            self.remove_stale_state("now")
        self.save()
        return messages.Done()

    def _complete(self, pod: Pod, container: PodContainer) -> None:
        """Records that a container has ended, and releases an init container's memory.

        Its pod keeps everything else, because the pod may need it again. The memory would be
        released when the next container starts.

        Requirements: CPU-RECONCILE-001, NODE-END-001, NODE-END-002.
        """
        self.ended_containers.add((pod.uid, container.name))
        self.runtime_cpus.pop((pod.uid, container.name), None)
        if container.runs_to_completion:
            self.memory.release(pod.uid, container.name)

    def drop(self, uid: str) -> None:
        """Forgets a pod; its resources are released along with other stale state.

        Requirements: CPU-RECONCILE-001, CPU-REMOVE-004, NODE-ALLOC-014, NODE-ALLOC-015,
        NODE-METRIC-006, NODE-REFUSED-001.
        """
        self.pods.pop(uid, None)
        self.awaited_pods.discard(uid)
        self.admitted.discard(uid)
        self.ended_containers = {place for place in self.ended_containers if place[0] != uid}

    def devices(self, args: messages.DevicesArgs) -> messages.Done:
        self.device_manager.report(args.devices)
        self.save()
        return messages.Done()

    def hints(self, args: messages.HintsArgs) -> messages.NodeHints:
        """Returns each provider's hints for a container, or for the pod as a whole."""
        pod = self.read_pod(args.pod)
        container = None if args.container is None else pod.container(args.container)
        self.remove_stale_state("admission")
        self.save()
        _check_countable(self.setup.nodes)

        def of(provider: Manager[Any]) -> messages.ProviderHints:
            return to_messages(provider.hints(pod, container))

        return messages.NodeHints(
            of(self.cpus),
            of(self.memory),
            of(self.device_manager) if self.device_manager.has_plugins else None,
        )

    def state(self, _args: messages.NoArgs) -> messages.State:
        """Returns the resources of every container on the node, and the checkpoint files.

        Requirements: CPU-CHECKPOINT-001, CPU-REMOVE-003, CPU-REMOVE-004, NODE-STATE-001.
        """
        self.remove_stale_state("now")
        self.save()
        return messages.State(
            shared=CPUSet.from_mask(self.cpus.state.shared),
            pods={uid: self._containers(pod) for uid, pod in self.pods.items()},
            files={
                file.name: content.decode("utf-8", "replace")
                for file in (self.cpus.file, self.memory.file)
                if (content := file.read()) is not None
            },
            metrics=self._metrics() if "metrics" in self.setup.include else None,
        )

    def _metrics(self) -> dict[str, int] | None:
        """The release's metrics; None until the pods of a restart have been admitted again."""
        if self.awaited_pods:
            return None
        values = {**self.counts, **self.memory.counts, **self.cpus.metrics()}
        # Two managers count alignment.
        for name, count in self.counts.items():
            values[name] = count + self.cpus.counts[name]
        return keep_known(values, self.setup.metrics)

    def _containers(self, pod: Pod) -> messages.Containers:
        return {container.name: self._container(pod, container) for container in pod.containers}

    def _container(self, pod: Pod, container: PodContainer) -> messages.Container:
        uid, name = pod.uid, container.name
        kept = self.affinity.get((uid, name), NO_AFFINITY)
        cpus = self.cpus.state
        limited = None
        if "quota" in self.setup.include:
            limited = self.setup.quotas.limits(pod, container, cpus.of(uid, name))
        return messages.Container(
            cpus=CPUSet.from_mask(cpus.allowed_cpus(uid, name)),
            exclusive=CPUSet.from_mask(cpus.of(uid, name) or 0),
            memory=_blocks(self.memory.state.of(uid, name) or ()),
            affinity=messages.Hint(kept.numa, kept.preferred),
            devices=self.device_manager.held_devices(uid, name),
            quota=limited,
        )

    def reconcile(self, _args: messages.NoArgs) -> messages.Reconciled:
        """Sends the container runtime every CPU set that has changed since the last pass.

        Requirements: CPU-NONE-007, CPU-RECONCILE-001, CPU-RECONCILE-004, CPU-RECONCILE-005,
        CPU-RECONCILE-006, CPU-RECONCILE-007, CPU-RECONCILE-008.
        """
        self.remove_stale_state("reconcile", [self.cpus])
        self.save()
        updates = []
        for pod in self.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                cpus = self.cpus.state.allowed_cpus(*place)
                if (
                    cpus
                    and place not in self.ended_containers
                    and self.runtime_cpus.get(place) != cpus
                ):
                    self.runtime_cpus[place] = cpus
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
    if len(nodes) > MAX_ENUMERABLE_NODES:
        raise UnsupportedError(f"hints for more than {MAX_ENUMERABLE_NODES} NUMA nodes")
    if min(nodes, default=0) < 0:
        raise UnsupportedError("hints for NUMA nodes with negative ids")
