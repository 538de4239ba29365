"""Turns a simulation into the answer that users see: rows, owners, stock and stories."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from numaproof.cli.defect_views import block_text, shaped_answers
from numaproof.inputs.plurals import plural
from numaproof.protocol import messages
from numaproof.protocol.events import Owner
from numaproof.reports.answers import AnswerReport, ContainerRow, Item, Mark, Story, StoryStep
from numaproof.reports.layout import RESERVED, DrawnDevice, DrawnMemory, Stock
from numaproof.simulation.amounts import nodes_text
from numaproof.simulation.explanation import Allocation, ManagerHints, likewise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.machine import MachineInfo
    from numaproof.simulation.admission import NodeView, PodResult, Question, Simulation
    from numaproof.simulation.explanation import Candidate, Candidates, ExplanationStep, Preference
    from numaproof.simulation.simulate import CheckedSimulation

_MARKS: dict[Preference, Mark] = {"preferred": "good", "possible": "fair", "impossible": "bad"}
_MOST_DEVICES = 4
_CONFIG_CHECK = "run `numaproof config check` to see everything that is wrong, and how to fix it"


def answer(found: CheckedSimulation, question: Question, machine: str) -> AnswerReport:
    """The answer about the machine that the user calls `machine`."""
    node, start = found.node, found.start
    setting = [("machine", machine), ("Kubernetes", question.kubernetes)]
    if node is None:
        assert isinstance(start, messages.StartRefused)
        said = f"{start.stage}: {start.message}"
        story = Story("KubeletConfiguration", False, said, "no pod can run", (), (_CONFIG_CHECK,))
        title = "The kubelet does not start"
        shaped = shaped_answers(found.warnings)
        return AnswerReport(
            title, False, tuple(setting), (), (story,), question.machine, shaped=shaped
        )
    policies = node.policies
    setting += [
        ("CPU Manager", policies.cpu),
        ("Memory Manager", policies.memory),
        ("Topology Manager", f"{policies.topology}, scope {policies.scope}"),
    ]
    refused = sum(one.refusal is not None for one in found.pods)
    pods = plural(len(found.pods), "pod")
    title = f"{refused} of {pods} refused" if refused else f"{pods} admitted, none refused"
    if found.warnings:
        title += f"; {plural(len(found.warnings), 'answer')} shaped by defects of the kubelet"
    return AnswerReport(
        title=title,
        good=found.admitted,
        setting=tuple(setting),
        rows=tuple(_rows(found)),
        stories=tuple(_stories(found)),
        machine=question.machine,
        owners=tuple(_owners(found, node)),
        shared=str(node.shared),
        stock=_stock(node, question.machine),
        shaped=shaped_answers(found.warnings),
    )


def _alike(found: Simulation) -> Iterator[tuple[str, list[PodResult]]]:
    """Pods in turn, with replicas together that were refused for the same reason."""

    def kind(one: PodResult) -> tuple[object, ...]:
        if one.refusal is None or one.explanation is None:
            return (one.pod,)
        return one.pod.partition("#")[0], one.refusal.message, one.explanation.summary

    for _, group in groupby(found.pods, key=kind):
        pods = list(group)
        name = pods[0].pod
        if len(pods) > 1:
            name = f"{name} to {pods[-1].pod.partition('#')[2]}"
        yield name, pods


def _rows(found: Simulation) -> Iterator[ContainerRow]:
    for name, (one, *_) in _alike(found):
        if one.refusal:
            yield ContainerRow(name, refusal=one.refusal.reason)
        for container, held in (one.containers or {}).items():
            numa = held.affinity.numa
            yield ContainerRow(
                pod=name,
                container=container,
                cpus=str(held.exclusive) or "shared pool",
                memory=", ".join(block_text(block, numa) for block in held.memory),
                devices=", ".join(_devices(held)),
                aligned="" if numa is None else nodes_text(numa),
            )


def _devices(held: messages.Container) -> Iterator[str]:
    for resource, ids in (held.devices or {}).items():
        more = f" and {len(ids) - _MOST_DEVICES} more" if len(ids) > _MOST_DEVICES else ""
        yield f"{resource.partition('/')[2]}: {' '.join(ids[:_MOST_DEVICES])}{more}"


def _owners(found: Simulation, node: NodeView) -> Iterator[Owner]:
    """Who has CPUs or devices of its own, and the reservation."""
    for one in found.pods:
        for container, held in (one.containers or {}).items():
            if held.exclusive or any((held.devices or {}).values()):
                yield Owner(f"{one.pod}/{container}", str(held.exclusive))
    if node.reserved:
        yield Owner(RESERVED, str(node.reserved))


def _stock(node: NodeView, machine: MachineInfo) -> Stock:
    """Memory and devices by node; an unused node that has only memory says so by its size."""
    with_cpus = {one.node_id for one in machine.topology or () if one.cores}
    return Stock(
        tuple(
            DrawnMemory(
                one.node,
                one.type,
                one.total,
                one.reserved,
                one.allocated,
                str(one.group) if len(one.group) > 1 else "",
            )
            for one in node.memory
            if one.allocated or one.reserved or one.node in with_cpus
        ),
        tuple(
            DrawnDevice(
                one.resource,
                one.id,
                tuple(one.numa or ()),
                one.healthy,
                f"{one.pod}/{one.container}" if one.pod else "",
            )
            for one in node.devices
        ),
    )


def _stories(found: Simulation) -> Iterator[Story]:
    for name, (one, *_) in _alike(found):
        why = one.explanation
        if why is not None:
            said = one.refusal and f"{one.refusal.reason}: {one.refusal.message}"
            steps = tuple(_step(step) for step in why.steps)
            yield Story(name, one.refusal is None, said or "", why.summary, steps, why.advice)


def _step(step: ExplanationStep) -> StoryStep:
    if isinstance(step, ManagerHints):
        place = f"{step.manager}, {step.resource}" if step.resource else step.manager
        return _with(f"{place}: {step.text}", step.candidates)
    if isinstance(step, Allocation):
        who = f"container {step.container}" if step.container else "the pod as a whole"
        return _with(f"{step.manager}, {who}: {step.text}", step.candidates)
    return StoryStep(step.text)


def _with(text: str, candidates: Candidates) -> StoryStep:
    return StoryStep(text, tuple(_item(one) for one in candidates.told), candidates.more)


def _item(one: Candidate) -> Item:
    text = one.text if one.mark == "impossible" else f"{one.mark}: {one.text}"
    return Item(_MARKS[one.mark], f"{nodes_text(one.numa)}{likewise(one)}", text)
