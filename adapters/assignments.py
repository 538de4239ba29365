"""Compares every CPU assignment on small machines with the reference's.

    python adapters/assignments.py --implementation CMD --out DIR

The machines are all uniform machines with up to eight CPUs, each with unique core ids and with core
ids that restart in each socket. For each set of free CPUs and each count, the program and the
reference are called: 76,610 calls in total. Answers are counted as

    same         equal to the reference's, either the kubelet's or the documented one
    other        the right number of free CPUs, but different ones: the program has its own rule
    wrong        too many or too few CPUs, CPUs that aren't free, a refusal although enough are
                 free, or an assignment although too few are free
    crash        no answer, or a fault
    unsupported  not compared

The counts and, for each kind but `same`, the smallest call as a case file are written to DIR. The
exit code is 1 if there are crashes, wrong answers or, at level placement and above, other answers.
With --expected FILE, it is 0 if the counts equal those in the file or, for programs with random
answers, if the kinds of failed answers are those listed.
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
    """A uniform machine. The threads of a core aren't adjacent, as on x86."""

    sockets: int
    nodes: int
    cores: int
    threads: int
    ids_per_socket: bool

    @property
    def cpus(self) -> int:
        """The number of CPUs."""
        return self.sockets * self.nodes * self.cores * self.threads

    def machine(self) -> MachineInfo:
        """The machine, with `nodes` per socket and `cores` per node."""
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
    """Yields all machines, smallest first. With one socket, both kinds of core ids are the same."""
    sizes = range(1, MAX_CPUS + 1)
    found = [
        UniformMachine(*size, ids_per_socket=again)
        for size in product(sizes, repeat=4)
        for again in (False, True)
        if not again or size[0] > 1
    ]
    return sorted((one for one in found if one.cpus <= MAX_CPUS), key=lambda machine: machine.cpus)


def calls(shape: UniformMachine, kubernetes: str) -> Iterator[messages.AssignArgs]:
    """Yields every set of free CPUs with every count, smallest first."""
    machine = shape.machine()
    free = sorted((CPUSet.from_mask(mask) for mask in range(1 << shape.cpus)), key=len)
    for available, count in product(free, range(1, shape.cpus + 1)):
        yield messages.AssignArgs(machine, available, count, kubernetes=kubernetes)


class Enumeration:
    """Calls a program and the reference.

    Args:
        program: the program under test.
    """

    def __init__(self, program: Implementation) -> None:
        self._program = program
        self._references = (Reference(), Reference(follows_docs=True))
        self.counts: Counter[str] = Counter()
        self.smallest: dict[str, tuple[messages.AssignArgs, str]] = {}

    def ask(self, args: messages.AssignArgs) -> None:
        """Makes one call and counts its answer."""
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
    """Returns a call as a case for `numaproof replay`."""
    step = Step(assign=AssignStep(str(args.available), args.count), expect="anything")
    return Case(
        f"assign-{kind}", message, (), level="placement", machine=args.machine, steps=(step,)
    )


def is_expected(
    counts: Mapping[str, int], failing: Collection[str], expected: Mapping[str, Any]
) -> bool:
    """Returns whether the counts, or the kinds of failed answers, are the expected ones."""
    if "counts" in expected:
        return bool(expected["counts"] == counts)
    return {*expected.get("kinds", ())} == {kind for kind in failing if counts.get(kind)}


def main() -> int:
    """Makes all calls, then writes and judges the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--implementation", required=True, metavar='"CMD ..."', type=shlex.split)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--expected", type=Path, help="file with the expected counts or kinds")
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
