"""Compares every CPU assignment on small machines with the reference's.

    python adapters/assignments.py --implementation CMD --out DIR

The machines are all uniform ones of up to eight CPUs, with core ids that are unique on the machine
and with those that begin again in each socket. On each, every set of free CPUs and every count is
asked for, 76,610 calls, of the program and of the reference. An answer is

    same         that of the reference, as a kubelet or as documented
    other        as many of the free CPUs, but others: a rule of its own
    wrong        too many, too few or others' CPUs, or refused where there are enough, or not where
                 there are not
    crash        no answer, or a fault
    unsupported  not compared

DIR gets the counts and the smallest call of each kind but the first, as a case file. The exit code
is 1 where there are crashes, wrong answers or, from level placement on, other ones, unless
--expected names a file with just these counts, or with just the kinds of these answers, for a
program that answers at random.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from numaproof.conformance.cases import writing
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.schema import AssignStep, Case, Step
from numaproof.conformance.execution.implementation import ImplementationFailure, handshake
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numaproof.conformance.execution.implementation import Implementation

MAX_CPUS = 8
TIMEOUT = 30.0
NAME = "assignments.yaml"
FAILING = ("wrong", "crash")


@dataclass(frozen=True)
class UniformMachine:
    """A uniform machine; threads of a core are apart, as on x86."""

    sockets: int
    nodes: int
    cores: int
    threads: int
    ids_per_socket: bool

    @property
    def cpus(self) -> int:
        """How many CPUs it has."""
        return self.sockets * self.nodes * self.cores * self.threads

    def machine(self) -> MachineInfo:
        """The machine; `nodes` are those of each socket, `cores` those of each node."""
        count = self.sockets * self.nodes * self.cores
        per_socket = self.nodes * self.cores

        cores = [
            Core(
                core_id=number % per_socket if self.ids_per_socket else number,
                thread_ids=tuple(range(number, self.cpus, count)),
                socket_id=number // per_socket,
            )
            for number in range(count)
        ]
        nodes = tuple(
            Node(node, 1 << 30, cores=tuple(cores[node * self.cores : (node + 1) * self.cores]))
            for node in range(self.sockets * self.nodes)
        )
        return MachineInfo(self.cpus, count, self.sockets, len(nodes) << 30, topology=nodes)


def shapes() -> list[UniformMachine]:
    """All machines, the smallest first; in one socket the two ways of core ids are the same."""
    sizes = range(1, MAX_CPUS + 1)
    found = [
        UniformMachine(*size, ids_per_socket=again)
        for size in product(sizes, repeat=4)
        for again in (False, True)
        if not again or size[0] > 1
    ]
    return sorted((one for one in found if one.cpus <= MAX_CPUS), key=lambda machine: machine.cpus)


def calls(shape: UniformMachine, kubernetes: str) -> Iterator[messages.AssignArgs]:
    """Every set of free CPUs with every count, the smallest first."""
    machine = shape.machine()
    free = sorted((CPUSet.from_mask(mask) for mask in range(1 << shape.cpus)), key=len)
    for available, count in product(free, range(1, shape.cpus + 1)):
        yield messages.AssignArgs(machine, available, count, kubernetes=kubernetes)


class Enumeration:
    """Asks a program and the reference.

    Args:
        program: what is asked.
    """

    def __init__(self, program: Implementation) -> None:
        self._program = program
        self._references = (Reference(), Reference(follows_docs=True))
        self.counts: Counter[str] = Counter()
        self.smallest: dict[str, tuple[messages.AssignArgs, str]] = {}

    def ask(self, args: messages.AssignArgs) -> None:
        """Makes one call, and counts how it was answered."""
        kind, message = self._classify(args)
        self.counts[kind] += 1
        if kind != "same":
            self.smallest.setdefault(kind, (args, message))

    def _classify(self, args: messages.AssignArgs) -> tuple[str, str]:
        try:
            answer = self._program.call("assign", args)
        except ImplementationFailure as failure:
            return "crash", f"{failure.outcome}: {failure}"
        match answer:
            case messages.Fault():
                return "crash", f"fault: {answer.message}"
            case messages.Unsupported():
                return "unsupported", answer.what
            case messages.Assigned():
                return self._compare_cpus(args, answer.cpus)
        enough = args.count <= len(args.available)
        return ("wrong", "refused, and there are enough") if enough else ("same", "")

    def _compare_cpus(self, args: messages.AssignArgs, cpus: CPUSet) -> tuple[str, str]:
        if len(cpus) != args.count or not cpus.issubset(args.available):
            return "wrong", f"{cpus or 'none'} for {args.count} of {args.available or 'none'}"
        right = []
        for reference in self._references:
            answer = reference.call("assign", args)
            if isinstance(answer, messages.Assigned) and answer.cpus == cpus:
                return "same", ""
            right.append(str(getattr(answer, "cpus", "a refusal")))
        return "other", f"{cpus}, and the reference's are {' or '.join(dict.fromkeys(right))}"


def case(kind: str, args: messages.AssignArgs, message: str) -> Case:
    """A call as a case that `numaproof replay` plays."""
    step = Step(assign=AssignStep(str(args.available), args.count), expect="anything")
    return Case(
        f"assign-{kind}", message, (), level="placement", machine=args.machine, steps=(step,)
    )


def is_expected(
    counts: Mapping[str, int], failing: Collection[str], expected: Mapping[str, Any]
) -> bool:
    """Whether the counts are those expected, or what fails is of just the kinds expected."""
    if "counts" in expected:
        return bool(expected["counts"] == counts)
    return {*expected.get("kinds", ())} == {kind for kind in failing if counts.get(kind)}


def main() -> int:
    """Enumerates, writes what was found, and judges it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--implementation", required=True, metavar='"CMD ..."', type=shlex.split)
    parser.add_argument("--out", type=Path, required=True, help="folder of what is found")
    parser.add_argument("--expected", type=Path, help="a file with what is known")
    asked = parser.parse_args()
    program = Subprocess(asked.implementation, TIMEOUT)
    try:
        hello = handshake(program, "numaproof")
        enumeration = Enumeration(program)
        for shape in shapes():
            for args in calls(shape, hello.kubernetes[-1]):
                enumeration.ask(args)
    finally:
        program.close()
    counts = dict(sorted(enumeration.counts.items()))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / NAME).write_text(yaml.safe_dump({"counts": counts}), encoding="utf-8")
    for kind, (args, message) in enumeration.smallest.items():
        writing.write(case(kind, args, message), asked.out / f"{kind}.yaml")
    failing = (*FAILING, *(("other",) if applies("placement", hello.level) else ()))
    good = is_expected(
        counts, failing, yaml.safe_load(asked.expected.read_text()) if asked.expected else {}
    )
    shown = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    print(f"{'Passed' if good else 'Failed'}: {sum(counts.values()):,} assignments ({shown})")  # noqa: T201
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
