"""Properties of CPU assignment, compared with every set of CPUs that could have been assigned."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.machines import regular
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.implementation import InProcess
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.machine import MachineInfo

EXAMPLES = settings(max_examples=50, derandomize=True, deadline=None)


def machine(sockets: int, nodes: int, cores: int, smt: int, *, adjacent: bool) -> MachineInfo:
    """A machine with `sockets`, `nodes` per socket, `cores` per node and `smt` threads per core."""
    return regular(sockets * nodes, cores, smt, sockets, adjacent=adjacent)


machines = st.builds(
    machine,
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from((1, 2)),
    adjacent=st.booleans(),
).filter(lambda machine: machine.num_cores <= 12)


def assign(
    info: MachineInfo, available: CPUSet, count: int, options: dict[str, str] | None = None
) -> messages.Answer:
    args = messages.AssignArgs(info, available, count, options or {})
    return InProcess(Reference).call("assign", args)


def whole(cpus: CPUSet, units: Iterable[CPUSet]) -> int:
    """Returns how many whole units a set of CPUs contains."""
    return sum(unit.issubset(cpus) for unit in units)


@EXAMPLES
@given(st.data())
def test_packing_maximizes_whole_sockets_nodes_and_cores(
    data: st.DataObject,
) -> None:
    info = data.draw(machines)
    facts = Facts(info)
    free = data.draw(st.sets(st.sampled_from(sorted(facts.all)), min_size=1))
    count = data.draw(st.integers(1, len(free)))
    answer = assign(info, CPUSet(free), count)
    assert isinstance(answer, messages.Assigned)
    kinds = (facts.sockets.values(), facts.nodes.values(), facts.cores)

    def wholeness(cpus: CPUSet) -> tuple[int, ...]:
        return tuple(whole(cpus, units) for units in kinds)

    best = max(wholeness(CPUSet(some)) for some in combinations(sorted(free), count))
    assert (len(answer.cpus), answer.cpus.issubset(CPUSet(free))) == (count, True)
    assert wholeness(answer.cpus) == best


@EXAMPLES
@given(machines, st.data())
def test_distribution_is_even_over_the_fewest_nodes(info: MachineInfo, data: st.DataObject) -> None:
    facts = Facts(info)
    count = data.draw(st.integers(1, len(facts.all)))
    answer = assign(info, facts.all, count, {"distribute-cpus-across-numa": "true"})
    assert isinstance(answer, messages.Assigned)
    shares = sorted(len(node & answer.cpus) for node in facts.nodes.values() if node & answer.cpus)
    fewest = -(-count // max(map(len, facts.nodes.values())))
    assert len(shares) >= fewest
    assert len(shares) == fewest or count % fewest
    assert shares[-1] - shares[0] <= 1
