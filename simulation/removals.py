"""Finds the smallest set of pods without which a node would admit a refused pod.

The answer is exact: the reference admits the pod without the set, and no better set exists. Sets
are tried from the best one on, but few of them have to be: bounds rule out all sets that leave too
little of a resource on every suitable set of NUMA nodes, and pods that hold equal resources in
equal places count as one. A search that takes too long is cut, which the answer says.

Removing more pods is assumed to never turn an admission into a refusal, except if no removal seems
to help: then all sets of a few pods are tried.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.reference.capacity.allocatable import total_request
from numaproof.reference.capacity.preemption import is_critical
from numaproof.reference.errors import AdmissionError
from numaproof.reference.topology import scope
from numaproof.simulation import requests
from numaproof.simulation.explaining import snapshot
from numaproof.simulation.removal_bounds import Reach, bounds, places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.removal_bounds import Alternatives, Cost

MAX_TRIALS = 3000
"""The number of sets to try with the reference before the search is cut."""

MAX_VISITS = 300_000
"""The number of partial sets to bound before the search is cut."""

_FEW = 8
"""Up to this number of pods, all sets can be tried."""

Mark = Literal["static", "DaemonSet", "critical"]
"""What is special about removing a pod.

A static pod can only be removed with its file, and a DaemonSet creates its pod again. A critical
pod has a system priority.
"""


class RemovablePod(msgspec.Struct, frozen=True):
    """A pod that could be removed; `cpus` are the thousandths of CPUs that it requests."""

    pod: str
    priority: int
    cpus: int
    marks: tuple[Mark, ...] = ()


class Removals(msgspec.Struct, frozen=True):
    """The pods to remove so that the node admits a refused pod.

    Attributes:
        pods: the pods; empty if the node refuses the pod even without all others.
        higher: how many of them have a higher priority than the refused pod.
        smallest: whether this is proven to be the best set. If not, the search was cut.
        trials: the number of sets that were tried with the reference.
    """

    pods: tuple[RemovablePod, ...]
    higher: int
    smallest: bool
    trials: int


def removable(
    pod: Pod, name: str, controller: str = "", *, is_static: bool = False
) -> RemovablePod:
    """Describes a pod on the node; `controller` is ``KIND/NAME`` of its controller, if any."""
    marks: list[Mark] = []
    if is_static:
        marks.append("static")
    if controller.startswith("DaemonSet/"):
        marks.append("DaemonSet")
    if is_critical(pod):
        marks.append("critical")
    return RemovablePod(name, pod.priority or 0, total_request(pod, requests.CPU), tuple(marks))


def smallest_removal(
    node: StartedNode, pod: Pod, describe: Callable[[Pod], RemovablePod]
) -> Removals:
    """Finds the best set of pods to remove from a node that refuses a pod.

    Sets are compared by the number of pods with a higher priority than the refused pod, then by the
    number of pods, the sum of their priorities, and the CPUs they request.

    Args:
        node: the node before the admission, which is not changed.
        pod: the refused pod.
        describe: describes a pod of the node.
    """
    search = _Search(node, pod, describe)
    try:
        found = search.best()
    except _CutError:
        found = search.incumbent
    higher = sum(search.is_higher(uid) for uid in found)
    pods = tuple(about for uid, about in search.about.items() if uid in found)
    return Removals(pods, higher, not search.is_cut, search.trials)


class _CutError(Exception):
    """The search has reached a limit."""


class _Search:
    """A search for the best set; `incumbent` is the best set found so far."""

    def __init__(
        self, node: StartedNode, pod: Pod, describe: Callable[[Pod], RemovablePod]
    ) -> None:
        self.node = node
        self.pod = pod
        self.uids = [uid for uid in node.pods if uid != pod.uid]
        self.about = {uid: describe(node.pods[uid]) for uid in self.uids}
        self.incumbent: tuple[str, ...] = ()
        self.is_cut = False
        self.trials = 0
        self._visits = 0

    def is_higher(self, uid: str) -> bool:
        return self.about[uid].priority > (self.pod.priority or 0)

    def best(self) -> tuple[str, ...]:
        if not self._admits(self.uids):
            return self._despite_more_room()
        lower = [uid for uid in self.uids if not self.is_higher(uid)]
        start = lower if len(lower) < len(self.uids) and self._admits(lower) else self.uids
        self.incumbent = self._shrunk(start)
        every = bounds(self.node, _without(self.node, self.uids), self.pod)
        classes = self._classes(every)
        of_higher = [one for one in classes if self.is_higher(one[0])]
        most = sum(map(self.is_higher, self.incumbent))
        for number in range(most + 1):
            # Removing all lower pods shows whether this number of higher ones is enough.
            if number < most and not self._best_with(every, of_higher, number, 0, tuple(lower)):
                continue
            largest = len(self.incumbent) if number == most else len(lower) + number
            for size in range(max(1, number), largest + 1):
                if found := self._best_with(every, classes, number, size - number):
                    return found
        return self.incumbent

    def _despite_more_room(self) -> tuple[str, ...]:
        """Returns the best set for a pod that even an empty node refuses; usually it is empty.

        More free memory may lead the Memory Manager to nodes without suitable CPUs. If there are
        many pods, only single ones are tried.
        """
        largest = len(self.uids) if len(self.uids) <= _FEW else 1
        sets = [some for size in range(1, largest + 1) for some in combinations(self.uids, size)]
        return next(filter(self._admits, sorted(sets, key=self._key)), ())

    def _shrunk(self, removal: Sequence[str]) -> tuple[str, ...]:
        """Returns a subset that still suffices, keeping as many of the important pods as it can."""
        left = list(removal)
        for uid in sorted(removal, key=lambda uid: self._key((uid,)), reverse=True):
            fewer = [one for one in left if one != uid]
            if self._admits(fewer):
                left = fewer
        return tuple(left)

    def _key(self, uids: Sequence[str]) -> tuple[int, ...]:
        """The order of sets: the best ones are the smallest."""
        priorities, cpus = zip(*map(self._cost, uids), strict=True)
        return sum(map(self.is_higher, uids)), len(uids), sum(priorities), sum(cpus)

    def _admits(self, removal: Sequence[str]) -> bool:
        if self.trials >= MAX_TRIALS:
            self._cut()
        self.trials += 1
        return admits(self.node, self.pod, removal)

    def _cut(self) -> None:
        self.is_cut = True
        raise _CutError

    def _classes(self, every: tuple[Alternatives, ...]) -> list[list[str]]:
        """Groups pods that hold equal resources in equal places and are equally important."""
        flat = [bound for alternatives in every for one in alternatives for bound in one]
        classes: dict[tuple[object, ...], list[str]] = {}
        for uid in self.uids:
            about = self.about[uid]
            gains = tuple(bound.gains.get(uid, 0) for bound in flat)
            kind = (about.priority, about.cpus, gains, places(self.node, uid))
            classes.setdefault(kind, []).append(uid)
        return sorted(classes.values(), key=lambda members: self._key(members[:1]))

    def _best_with(
        self,
        every: tuple[Alternatives, ...],
        classes: list[list[str]],
        higher: int,
        lower: int,
        selection: tuple[str, ...] = (),
    ) -> tuple[str, ...]:
        """Returns the best set of `selection` and these numbers of pods; empty if none suffices."""
        reach = Reach(every, classes, higher + lower, {uid: self._cost(uid) for uid in self.uids})
        best: tuple[str, ...] = ()
        least: tuple[float, float] | None = None

        def visit(selection: tuple[str, ...], start: int, higher: int, lower: int) -> None:
            nonlocal best, least
            self._visits += 1
            if self._visits > MAX_VISITS:
                self._cut()
            left = higher + lower
            if not reach.can_meet(selection, start, left):
                return
            if least is not None and reach.least_cost(selection, start, left) >= least:
                return
            if not left:
                if self._admits(selection):
                    best, least = selection, reach.least_cost(selection, start, 0)
                    self.incumbent = min(self.incumbent, best, key=self._key)
                return
            if start == len(classes):
                return
            members = classes[start]
            is_higher = self.is_higher(members[0])
            for count in range(min(len(members), higher if is_higher else lower), -1, -1):
                rest = (higher - count, lower) if is_higher else (higher, lower - count)
                visit((*selection, *members[:count]), start + 1, *rest)

        visit(selection, 0, higher, lower)
        return best

    def _cost(self, uid: str) -> Cost:
        return self.about[uid].priority, self.about[uid].cpus


def admits(node: StartedNode, pod: Pod, removal: Sequence[str]) -> bool:
    """Whether a node admits a pod without some of its pods, and without evicting others."""
    without = _without(node, removal)
    setup = without.setup
    try:
        scope.admit(setup.topology_policy, setup.scope, without.providers, pod, lambda *_: None)
    except AdmissionError:
        return False
    return not without.shortages(pod)


def _without(node: StartedNode, removal: Sequence[str]) -> StartedNode:
    twin = snapshot(node)
    for uid in removal:
        twin.pods.pop(uid, None)
        twin.admitted.discard(uid)
    for manager in twin.providers:
        manager.remove_stale_state(twin.pods, "now")
    return twin
