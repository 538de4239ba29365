"""A node for allocators that handle CPUs but not pods: CPU owners, reservation and restarts.

It manages pods as level `invariants` requires. The allocator chooses the CPUs; whether a container
gets exclusive CPUs, and how many, is decided here by Kubernetes' rules.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from protocol import Refusal, UnsupportedOperation, cpu_list, cpu_set

Json = dict[str, Any]


class Allocator(Protocol):
    """Chooses CPUs for a node."""

    def start(
        self, machine: Json, allocatable: set[int], held_cpus: list[set[int]], at: Path
    ) -> None:
        """Starts on a machine, given the CPUs in use; `at` is a private directory."""

    def take(self, count: int) -> set[int]:
        """Returns CPUs for one container.

        Raises:
            Refusal: the request can't be satisfied.
        """

    def give_back(self, cpus: set[int]) -> None:
        """Releases the CPUs of a container that has ended."""


class Ledger:
    """The operations `start`, `admit`, `remove` and `state`."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._file: Path | None = None
        self._allocations: dict[str, dict[str, list[int]]] = {}

    def handlers(self) -> dict[str, Any]:
        """The operations by name."""
        return {one: getattr(self, one) for one in ("start", "admit", "remove", "state")}

    def start(self, args: Json) -> Json:
        self._file = None
        machine, config = args.get("machine"), args["config"]
        if not machine:
            raise UnsupportedOperation("discovery")
        cores = [core for node in machine["topology"] or [] for core in node["cores"] or []]
        cpus = {cpu for core in cores for cpu in core["thread_ids"]}
        if config.get("cpuManagerPolicy") != "static":
            raise UnsupportedOperation("policy none")
        reserved = _reserved(config, cpus)
        if not reserved or not reserved <= cpus:
            raise Refusal("the static policy requires reserved CPUs on this machine", stage="cpu")
        self._all, self._allocatable = cpus, cpus - reserved
        folder = Path(args["state_dir"])
        saved = folder / "held.json"
        before = json.loads(saved.read_text()) if saved.exists() else {}
        self._allocations = {}
        for pod in args.get("pods") or []:
            uid, names = pod["metadata"]["uid"], [one["name"] for one in pod["spec"]["containers"]]
            self._allocations[uid] = {name: before.get(uid, {}).get(name, []) for name in names}
        if not self._exclusive() <= self._allocatable:
            raise Refusal("a pod holds CPUs that no longer exist", stage="cpu")
        held = [set(own) for pod in self._allocations.values() for own in pod.values() if own]
        self._allocator.start(machine, self._allocatable, held, folder)
        self._file = saved
        self._save()
        allocatable = cpu_list(self._allocatable)
        return {"cpus": {"all": cpu_list(cpus), "allocatable": allocatable}, "memory": []}

    def admit(self, args: Json) -> Json:
        self._require_start()
        pod = args["pod"]
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if spec.get("initContainers") or spec.get("resources"):
            raise UnsupportedOperation("init containers and pod-level resources")
        was = self._allocations.get(uid)
        held = self._allocations[uid] = dict(was or {})
        try:
            for container in spec["containers"]:
                if held.get(container["name"]):
                    continue  # readmitted: it keeps its CPUs
                count = _exclusive_count(pod, container)
                held[container["name"]] = sorted(self._allocate(count)) if count else []
        except Refusal:
            self.remove({"uid": uid})  # a refused pod leaves the node, even one that was there
            raise
        except Exception:  # restores the previous allocations
            for name, own in self._allocations.pop(uid).items():
                if own and not (was or {}).get(name):
                    self._allocator.give_back(set(own))
            if was is not None:
                self._allocations[uid] = was
            raise
        self._save()
        return {"containers": self._containers(held)}

    def remove(self, args: Json) -> Json:
        self._require_start()
        pod = self._allocations.get(args["uid"], {})
        for name in [args["container"]] if args.get("container") else list(pod):
            if pod.get(name):
                self._allocator.give_back(set(pod[name]))
                pod[name] = []
        if not args.get("container"):
            self._allocations.pop(args["uid"], None)
        self._save()
        return {}

    def state(self, _args: Json) -> Json:
        self._require_start()
        pods = {uid: self._containers(held) for uid, held in self._allocations.items()}
        return {"shared": cpu_list(self._all - self._exclusive()), "pods": pods}

    def _allocate(self, count: int) -> set[int]:
        free = self._allocatable - self._exclusive()
        if count > len(free):
            raise Refusal(f"CPUs requested: {count}, free: {len(free)}")
        return self._allocator.take(count)

    def _exclusive(self) -> set[int]:
        return {cpu for pod in self._allocations.values() for own in pod.values() for cpu in own}

    def _containers(self, cpus_by_name: dict[str, list[int]]) -> Json:
        pool = cpu_list(self._all - self._exclusive())
        rest = {"memory": [], "affinity": {"numa": None, "preferred": False}}
        own = {name: cpu_list(cpus) for name, cpus in cpus_by_name.items()}
        return {
            name: {"cpus": cpus or pool, "exclusive": cpus, **rest} for name, cpus in own.items()
        }

    def _require_start(self) -> None:
        if self._file is None:
            raise RuntimeError("the node has not started")

    def _save(self) -> None:
        if self._file:
            self._file.write_text(json.dumps(self._allocations))


def _reserved(config: Json, cpus: set[int]) -> set[int]:
    """Returns the reserved CPUs: those listed, or else the lowest CPUs, as many as required."""
    if named := config.get("reservedSystemCPUs"):
        return cpu_set(named)
    amounts = [config.get(key) or {} for key in ("kubeReserved", "systemReserved")]
    count = math.ceil(sum(round(_quantity(one.get("cpu", 0)), 3) for one in amounts))
    return set(sorted(cpus)[:count]) if count <= len(cpus) else set()


def _exclusive_count(pod: Json, container: Json) -> int:
    """Returns the number of exclusive CPUs: whole CPUs, in Guaranteed pods only."""
    pairs = [_amounts(one, name) for one in pod["spec"]["containers"] for name in ("cpu", "memory")]
    qos = (pod.get("status") or {}).get("qosClass")
    guaranteed = qos == "Guaranteed" if qos else all(limit and ask == limit for ask, limit in pairs)
    cpus, _ = _amounts(container, "cpu")
    return int(cpus) if guaranteed and cpus.denominator == 1 else 0


def _amounts(container: Json, name: str) -> tuple[Fraction, Fraction]:
    """Returns the request and the limit; a missing request defaults to the limit."""
    both = [(container.get("resources") or {}).get(kind) or {} for kind in ("requests", "limits")]
    limit = both[1].get(name, 0)
    return _quantity(both[0].get(name, limit)), _quantity(limit)


def _quantity(text: Any) -> Fraction:
    """Parses a quantity such as 1500m, 2Gi or 1e3."""
    number, letter, binary = re.fullmatch(r"(.*?)([numkKMGTPE]?)(i?)", str(text)).groups()
    power = "num kMGTPE".index(letter.replace("K", "k") or " ") - 3
    return Fraction(number) * Fraction(1024 if binary else 1000) ** power
