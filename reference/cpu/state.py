"""The CPU Manager's state: the shared pool, exclusive CPUs and reusable CPUs.

CPU sets are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from numaproof.reference.cpu.topology import union

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NOTHING: Mapping[str, Mapping[str, int]] = MappingProxyType({})


class ReusableCPUs(NamedTuple):
    """CPUs of a pod's ended init containers, which the pod's next containers can reuse.

    They are kept only for the pod of the last allocation.

    Requirements: CPU-INIT-007.
    """

    uid: str = ""
    cpus: int = 0

    def of(self, uid: str) -> int:
        return self.cpus if uid == self.uid else 0


_NO_REUSE = ReusableCPUs()


@dataclass(frozen=True, slots=True)
class CPUState:
    """The shared pool and the exclusive CPUs by pod uid and container name.

    `pods` are the CPUs of whole pods, by uid. `baselines` are the CPUs that each container was
    first assigned, or None if the release does not keep them. The checkpoint file has all fields
    except `reuse`. Every change creates a new value, so comparing identities shows whether the file
    is out of date.

    Requirements: CPU-POOL-007.
    """

    shared: int = 0
    exclusive: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: _NOTHING)
    pods: Mapping[str, int] = field(default_factory=dict)
    baselines: Mapping[str, Mapping[str, int]] | None = None
    reuse: ReusableCPUs = _NO_REUSE

    def of(self, uid: str, container: str) -> int | None:
        return self.exclusive.get(uid, {}).get(container)

    def allowed_cpus(self, uid: str, container: str) -> int:
        """The CPUs that the container may run on: its exclusive CPUs or the shared pool.

        Requirements: CPU-POOL-002, CPU-STATIC-028.
        """
        own = self.of(uid, container)
        return self.shared if own is None else own

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Yields every entry: pod uid, container name and CPUs."""
        for uid, containers in self.exclusive.items():
            for name, cpus in containers.items():
                yield uid, name, cpus

    def assign(self, uid: str, container: str, cpus: int) -> CPUState:
        """Moves `cpus` from the shared pool to the container.

        Requirements: CPU-POOL-005, CPU-STATIC-003.
        """
        return replace(self, shared=self.shared & ~cpus).share(uid, container, cpus)

    def share(self, uid: str, container: str, cpus: int) -> CPUState:
        """Gives the container `cpus` out of the CPUs of its pod."""
        entries = {**self.exclusive, uid: {**self.exclusive.get(uid, {}), container: cpus}}
        first = self.baselines
        if first is not None and container not in first.get(uid, {}):
            first = {**first, uid: {**first.get(uid, {}), container: cpus}}
        return replace(self, exclusive=entries, baselines=first)

    def assign_pod(self, uid: str, cpus: int) -> CPUState:
        """Moves `cpus` from the shared pool to the pod as a whole."""
        return replace(self, shared=self.shared & ~cpus, pods={**self.pods, uid: cpus})

    def release(self, uid: str, container: str) -> CPUState:
        """Removes the container's entry.

        Its CPUs return to the shared pool, except those that other containers of the pod also hold:
        an app container can reuse the CPUs of an init container. The CPUs of a whole pod return
        with its last container.

        Requirements: CPU-INIT-005, CPU-INIT-006, CPU-REMOVE-001, CPU-REMOVE-002, CPU-REMOVE-005,
        NODE-PODLEVEL-014.
        """
        own = self.of(uid, container)
        if own is None:
            return self
        entries = _without(self.exclusive, uid, container)
        first = self.baselines and _without(self.baselines, uid, container)
        left = entries.get(uid, {})
        shared, pods = self.shared, self.pods
        if uid not in pods:
            shared |= own & ~union(left.values())
        elif not left:
            shared |= pods[uid]
            pods = {other: cpus for other, cpus in pods.items() if other != uid}
        return replace(self, shared=shared, exclusive=entries, pods=pods, baselines=first)

    def all_cpus(self) -> int:
        return self.shared | union(self.pods.values()) | union(cpus for _, _, cpus in self)


def _without(
    entries: Mapping[str, Mapping[str, int]], uid: str, container: str
) -> dict[str, Mapping[str, int]]:
    """The entries without the container, and without its pod if that would be empty."""
    left = {name: cpus for name, cpus in entries.get(uid, {}).items() if name != container}
    others = {other: containers for other, containers in entries.items() if other != uid}
    return {**entries, uid: left} if left else others
