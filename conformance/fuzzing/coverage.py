"""Measures what fuzzing covers: machines, policies, options, actions and answers.

Everything except the answers follows from the requests, so the same examples have the same coverage
for every implementation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.protocol import events, messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.session import Call

Feature = tuple[str, str]
"""A subject and a value: ``("machines", "2 nodes")``."""

_SIZES = ((4, "1 to 4 CPUs"), (16, "5 to 16 CPUs"), (64, "17 to 64 CPUs"))

_POLICIES = {
    "cpuManagerPolicy": ("CPU", "none"),
    "memoryManagerPolicy": ("Memory", "None"),
    "topologyManagerPolicy": ("Topology", "none"),
    "topologyManagerScope": ("scope", "container"),
}
"""The label and the default of each policy field."""

_OPTIONS = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions")


def features_of_steps(
    facts: Facts, steps: Iterable[Step], actions: Iterable[str]
) -> Counter[Feature]:
    """Counts the features of an example.

    Args:
        facts: the initial machine.
        steps: all steps, including the first start.
        actions: the name of each action performed.
    """
    found: Counter[Feature] = Counter(("machines", label) for label in _machine(facts))
    done = Counter(actions)
    found.update({("actions", name): count for name, count in done.items()})
    found.update(("examples with an action", name) for name in done)
    starts = 0
    for step in steps:
        if step.start is not None:
            found.update(_configuration(step.start.config))
            found["starts", "again" if starts else "first"] += 1
            starts += 1
        elif step.tamper is not None:
            found["checkpoints changed by hand", step.tamper.how] += 1
    return found


def features_of_answers(calls: Iterable[Call]) -> Counter[Feature]:
    """Counts the features of answers, except those to `state`, which follows every call."""
    return Counter(
        ("answers", f"{call.operation}: {_answer(call.answer)}")
        for call in calls
        if call.operation != "state"
    )


def _machine(facts: Facts) -> Iterator[str]:
    nodes = facts.machine.topology or ()
    yield plural(len(nodes), "node")
    yield plural(len(facts.sockets), "socket")
    yield next((name for most, name in _SIZES if len(facts.all) <= most), "more than 64 CPUs")
    yield plural(max((len(core) for core in facts.cores), default=0), "thread") + " a core"
    if len({len(core) for core in facts.cores}) > 1:
        yield "cores of unequal size"
    if len(facts.sockets) > len(nodes):
        yield "a node that spans sockets"
    if any(not node.cores for node in nodes):
        yield "a node without CPUs"
    if any(not node.memory for node in nodes):
        yield "a node without memory"
    if [node.node_id for node in nodes] != list(range(len(nodes))):
        yield "node ids with gaps"


def _configuration(config: Mapping[str, object]) -> Iterator[Feature]:
    for key, (what, left_out) in _POLICIES.items():
        yield "policies", f"{what} {config.get(key, left_out)}"
    for key in _OPTIONS:
        options = config.get(key)
        if isinstance(options, dict):
            yield from (("options", name) for name, value in options.items() if value == "true")


_ANSWERS: Mapping[type, str] = {
    type(None): "no answer",
    messages.Fault: "fault",
    messages.Unsupported: "unsupported",
    messages.Admitted: "admitted",
}


def _answer(answer: messages.Answer | None) -> str:
    match answer:
        case messages.StartRefused():
            return f"refused at stage {answer.stage}"
        case messages.AdmissionRefused():
            return f"refused with {answer.reason}"
        case _:
            return _ANSWERS.get(type(answer), "answered")


@dataclass
class CoverageTotals:
    """The coverage of all examples of a run.

    Attributes:
        examples: the number of examples, including those that Hypothesis aborted.
        features: the number of occurrences of each feature.
        highest: the highest value of each target.
    """

    examples: int = 0
    features: Counter[Feature] = field(default_factory=Counter)
    highest: dict[str, float] = field(default_factory=dict)

    def add(self, features: Mapping[Feature, int], values: Mapping[str, float]) -> None:
        """Adds an example."""
        self.examples += 1
        self.features.update(features)
        for name, value in values.items():
            self.highest[name] = max(value, self.highest.get(name, value))

    def event(self, at: float) -> events.Coverage:
        """Returns the totals as an event, with subjects and values sorted."""
        subjects = dict.fromkeys(subject for subject, _ in self.features)
        counts = {
            subject: {
                name: count
                for (other, name), count in sorted(self.features.items())
                if other == subject
            }
            for subject in sorted(subjects)
        }
        return events.Coverage(at, self.examples, counts, dict(sorted(self.highest.items())))
