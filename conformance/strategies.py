"""Hypothesis strategies for machines, configurations and pods.

What they make is legal more often than not, with the odd shapes that real machines have: sparse
ids, memory-only nodes, split last-level caches, cores with threads offline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from hypothesis import strategies as st

from numaproof.conformance.cases import ContainerSpec, PodSpec, Quantities
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.claims import Claims
    from numaproof.conformance.facts import Facts
    from numaproof.protocol.messages import KubeletConfiguration

_GIB = 1 << 30
_CACHE_BYTES = 32 << 20
_LOCAL, _NEAR, _FAR = 10, 12, 21
_POLICIES = ("static", "static", "static", "none")


@st.composite
def machines(draw: st.DrawFn, max_cpus: int = 64) -> MachineInfo:
    """Machines of up to `max_cpus` CPUs: 1 to 4 sockets, 1 to 8 nodes, 1, 2 or 4 threads a core."""
    sockets = draw(st.sampled_from((1, 1, 2, 2, 4)))
    nodes = draw(st.sampled_from((1, 1, 2, 4)))
    smt = draw(st.sampled_from((2, 2, 1, 4)))
    most = max(1, min(8, max_cpus // (sockets * nodes * smt)))
    cores = draw(st.integers(1, most))
    cores_per_cache = draw(st.sampled_from((0, cores, 1, 2)))
    adjacent = draw(st.booleans())
    gap = draw(st.sampled_from((1, 1, 1, 2)))
    total = sockets * nodes * cores
    made = []
    for node in range(sockets * nodes):
        numbers = range(node * cores, (node + 1) * cores)
        made.append(
            tuple(
                Core(
                    core_id=number % (nodes * cores),
                    thread_ids=_threads(number, smt, total, adjacent=adjacent),
                    socket_id=node // nodes,
                    uncore_caches=_caches(number, cores_per_cache),
                )
                for number in numbers
            )
        )
    offline = draw(_offline(total * smt))
    memory_only = draw(st.sampled_from((0, 0, 0, 1)))
    return _machine(_without(made, offline) + [()] * memory_only, sockets, gap)


def _threads(core: int, smt: int, total: int, *, adjacent: bool) -> tuple[int, ...]:
    if adjacent:
        return tuple(range(core * smt, (core + 1) * smt))
    return tuple(core + thread * total for thread in range(smt))


def _caches(core: int, cores_per_cache: int) -> tuple[UncoreCache, ...] | None:
    if not cores_per_cache:
        return None
    return (UncoreCache(core // cores_per_cache, _CACHE_BYTES, "Unified", 3),)


def _offline(cpus: int) -> st.SearchStrategy[CPUSet]:
    """Mostly none; never CPU 0, which can't go offline."""
    some = st.sets(st.integers(1, max(1, cpus - 1)), max_size=min(3, cpus - 1)).map(CPUSet)
    return st.one_of(st.just(CPUSet()), st.just(CPUSet()), st.just(CPUSet()), some)


def _without(nodes: Sequence[tuple[Core, ...]], offline: CPUSet) -> list[tuple[Core, ...]]:
    return [
        tuple(
            Core(core.core_id, online, core.socket_id, core.uncore_caches)
            for core in cores
            if (online := tuple(cpu for cpu in core.thread_ids or () if cpu not in offline))
        )
        for cores in nodes
    ]


def _machine(nodes: Sequence[tuple[Core, ...]], sockets: int, gap: int) -> MachineInfo:
    per_socket = max(1, len(nodes) // sockets)
    pages = (HugePages(1048576, 0), HugePages(2048, 512))
    cores = [core for node in nodes for core in node]
    return MachineInfo(
        num_cores=sum(len(core.thread_ids or ()) for core in cores),
        num_physical_cores=len(cores),
        num_sockets=sockets,
        memory_capacity=len(nodes) * 4 * _GIB,
        hugepages=tuple(HugePages(one.page_size, one.num_pages * len(nodes)) for one in pages),
        topology=tuple(
            Node(
                node_id=number * gap,
                memory=4 * _GIB,
                hugepages=pages,
                distances=tuple(
                    _LOCAL
                    if other == number
                    else (_NEAR if other // per_socket == number // per_socket else _FAR)
                    for other in range(len(nodes))
                ),
                cores=node,
            )
            for number, node in enumerate(nodes)
        ),
    )


@st.composite
def kubelet_configurations(draw: st.DrawFn, facts: Facts, claims: Claims) -> KubeletConfiguration:
    """Configurations with a policy, options, gates and a reservation for the CPU Manager.

    Policies and options are those that the implementation claims.
    """
    gates = {
        name: draw(st.sampled_from((True, True, True, True, True, False)))
        for name in ("CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions")
    }
    config: dict[str, Any] = {
        "featureGates": gates,
        "kubeReserved": {"cpu": draw(_reserved_amounts())},
    }
    policies = [one for one in _POLICIES if one in claims.cpu_policies()]
    if policies:
        config["cpuManagerPolicy"] = draw(st.sampled_from(policies))
    # Policy none takes no options: they are tried with it now and then.
    wanted = config.get("cpuManagerPolicy") != "none" or draw(st.sampled_from((False, False, True)))
    if wanted and (options := claims.cpu_options()):
        chosen = draw(st.sets(st.sampled_from(options), max_size=2))
        if chosen:
            config["cpuManagerPolicyOptions"] = dict.fromkeys(sorted(chosen), "true")
    if draw(st.booleans()):
        cpus = sorted(facts.all)
        some = draw(st.sets(st.sampled_from(cpus), min_size=1, max_size=min(4, len(cpus))))
        config["reservedSystemCPUs"] = str(CPUSet(some))
    return config


def _reserved_amounts() -> st.SearchStrategy[str]:
    return st.sampled_from(("1", "1", "1", "2", "2", "500m", "1500m", "0"))


def cpu_amounts(facts: Facts) -> st.SearchStrategy[str]:
    """CPU quantities: mostly whole, of every size up to a little more than the machine has."""
    largest = len(facts.all) + 1
    smt = int(facts.properties["smt"])
    whole = st.one_of(
        st.integers(1, min(largest, 8)),
        st.integers(1, largest),
        st.integers(1, max(1, largest // smt)).map(lambda cores: cores * smt),
    )
    return st.one_of(
        whole.map(str),
        whole.map(str),
        whole.map(lambda count: f"{count}000m"),
        st.sampled_from(("500m", "1500m", "1.5", "0")),
    )


_ANY_KIND = ("limits", "limits", "limits", "both", "requests", "none")
_GUARANTEED = ("limits",)


@st.composite
def containers(
    draw: st.DrawFn, facts: Facts, *, sidecars: bool = False, kinds: tuple[str, ...] = _ANY_KIND
) -> ContainerSpec:
    """Containers: mostly with equal limits and requests, the rest of every QoS class."""
    restart: Literal["Always"] | None = None
    if sidecars and draw(st.booleans()):
        restart = "Always"
    amount = draw(cpu_amounts(facts))
    kind = draw(st.sampled_from(kinds))
    both: Quantities = {"cpu": amount, "memory": "64Mi"}
    match kind:
        case "limits":
            return ContainerSpec(limits=both, restartPolicy=restart)
        case "both":
            return ContainerSpec(
                requests={**both, "cpu": draw(st.sampled_from((amount, "100m")))},
                limits=both,
                restartPolicy=restart,
            )
        case "requests":
            return ContainerSpec(requests=both, restartPolicy=restart)
    return ContainerSpec(restartPolicy=restart)


@st.composite
def pods(draw: st.DrawFn, facts: Facts, name: str) -> PodSpec:
    """Pods of one to three containers, up to two init containers, sidecars among them.

    Three of four are Guaranteed: one container that is not makes the whole pod another class.
    """
    kinds = draw(st.sampled_from((_GUARANTEED, _GUARANTEED, _GUARANTEED, _ANY_KIND)))
    apps = draw(st.lists(containers(facts, kinds=kinds), min_size=1, max_size=3))
    inits = draw(st.lists(containers(facts, sidecars=True, kinds=kinds), max_size=2))
    return PodSpec(
        pod=name,
        containers={f"app{number}": spec for number, spec in enumerate(apps)},
        init={f"init{number}": spec for number, spec in enumerate(inits)},
    )
