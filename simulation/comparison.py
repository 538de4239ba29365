"""Compares configurations of a node by what they do with the same pods."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from numaproof.inputs.documents import DocumentError, load
from numaproof.inputs.names import suggestion
from numaproof.protocol import messages
from numaproof.reference.config.fields import DECODED
from numaproof.simulation import fields, flag_fields
from numaproof.simulation.admission import admit_pods, begin, node_of, readmissions
from numaproof.simulation.alignment import are_aligned
from numaproof.simulation.configuration_check import ConfigurationFinding, why_refused
from numaproof.simulation.lint import Crash, crashes
from numaproof.simulation.refusal_groups import RefusalGroup, refusal_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from numaproof.reference.node import StartedNode
    from numaproof.simulation.admission import PodResult, Question
    from numaproof.simulation.documents import ConfigurationFile
    from numaproof.simulation.pods import DescribedPod

MAX_VARIANTS = 200


class ChangeError(ValueError):
    """A text doesn't describe values of a setting; the message says why."""


class Change(NamedTuple):
    """A setting and the values to try; the path is a field, and a key if the field has keys."""

    path: tuple[str, ...]
    values: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """The path as the user writes it."""
        return ".".join(self.path)


class Variant(NamedTuple):
    """A configuration to try: its name, the node with it, and the product that may set more."""

    name: str
    question: Question
    adds_defaults: str = ""


class ComparedVariant(msgspec.Struct, frozen=True):
    """What a configuration does with the pods.

    Attributes:
        name: the values that it changes, or its file.
        refusal: why the kubelet does not start with it; the other fields are then empty.
        errors: what is wrong with it then, with how to fix it.
        crashes: the settings with which the kubelet can panic or hang.
        admitted: the number of pods admitted, including those on the node from the start.
        refused: the number of pods refused.
        exclusive_cpus: the number of CPUs assigned exclusively.
        aligned_pods: the number of pods whose exclusive CPUs, with their memory and devices, are
            on as few NUMA nodes as possible.
        unaligned_pods: the number of other pods with exclusive CPUs.
        split_cores: the number of cores whose threads a container shares with others.
        whole_nodes: the number of NUMA nodes without an exclusively assigned CPU.
        is_best: whether it has no crashes, and no other such configuration is better: more pods
            admitted, then more exclusive CPUs, more pods aligned, fewer cores split, and more whole
            nodes.
        causes: the refused pods by cause.
        gains: the pods that it admits, but the first configuration does not.
        losses: the pods that the first configuration admits, but this one does not.
    """

    name: str
    refusal: messages.StartRefused | None = None
    errors: tuple[ConfigurationFinding, ...] = ()
    crashes: tuple[Crash, ...] = ()
    admitted: int = 0
    refused: int = 0
    exclusive_cpus: int = 0
    aligned_pods: int = 0
    unaligned_pods: int = 0
    split_cores: int = 0
    whole_nodes: int = 0
    is_best: bool = False
    causes: tuple[RefusalGroup, ...] = ()
    gains: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()


def parse_change(text: str) -> Change:
    """Parses ``FIELD=VALUE,...`` or ``FIELD.KEY=VALUE,...``.

    Commas inside brackets do not separate values. ``reservedSystemCPUs`` contains commas, so its
    values are separated by semicolons.

    Raises:
        ChangeError: it is neither, or no resource manager reads the field.
    """
    name, equals, values = text.partition("=")
    field, dot, key = name.partition(".")
    if not equals:
        raise ChangeError(f"{text!r} is neither a file nor KEY=VALUE")
    if field not in DECODED:
        raise ChangeError(f"no resource manager reads {field!r}; {suggestion(field, DECODED)}")
    type_ = fields.table()[fields.CONFIGURATION][field].type
    if dot:
        if not type_.startswith("map["):
            raise ChangeError(f"{field} has no keys; use {field}=VALUE")
        type_ = type_.partition("]")[2]
    mark = ";" if field == _CPU_LIST else ","
    path = (field, key) if dot else (field,)
    return Change(path, tuple((one, _value(one, type_, name)) for one in _split(values, mark)))


_CPU_LIST = "reservedSystemCPUs"


def _split(text: str, mark: str) -> Iterator[str]:
    """Splits a text at a mark, except inside brackets."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character in "[{") - (character in "]}")
        if character == mark and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def _value(text: str, type_: str, name: str) -> Any:
    if type_ in ("string", "QuantityValue", "Quantity", "Duration"):
        return text
    try:
        value = load(text).data
    except DocumentError as error:
        raise ChangeError(f"{name}: {text!r}: {error}") from None
    if not fields.fits(value, type_):
        message, fix = fields.mismatch(type_)
        raise ChangeError(f"{name}: {text!r} {message} ({fix})")
    return value


def variants(
    question: Question,
    changes: Sequence[Change],
    files: Sequence[tuple[str, ConfigurationFile]],
    adds_defaults: str = "",
) -> tuple[Variant, ...]:
    """Returns the node unchanged, with every combination of changes, and with each file.

    The pods on the node get their resources anew, because its checkpoints rarely fit another
    configuration. `adds_defaults` is the product that may set more on the node; empty if none does.

    Raises:
        ChangeError: there are more than `MAX_VARIANTS`.
    """
    found = [Variant("as configured", question, adds_defaults)]
    state = question.state and msgspec.structs.replace(question.state, files={})
    anew = msgspec.structs.replace(question, state=state)
    number = 1
    for change in changes:
        number *= len(change.values)
    if number > MAX_VARIANTS:
        raise ChangeError(f"{number} combinations of values; the limit is {MAX_VARIANTS}")
    for values in product(*(one.values for one in changes)) if changes else ():
        config = dict(question.config)
        for change, (_, value) in zip(changes, values, strict=True):
            config = _with_change(config, change.path, value)
        name = ", ".join(
            f"{change.name} {text}" for change, (text, _) in zip(changes, values, strict=True)
        )
        flags = flag_fields.remaining(question.flags, question.config, config)
        if config != question.config:
            changed = msgspec.structs.replace(anew, config=config, flags=flags)
            found.append(Variant(name, changed, adds_defaults))
    for name, file in files:
        node = msgspec.structs.replace(anew, config=file.settings, flags=file.flags)
        found.append(Variant(name, node, file.adds_defaults))
    return tuple(found)


def _with_change(config: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    field, *keys = path
    if keys:
        value = {**(config.get(field) or {}), keys[0]: value}
    return {**config, field: value}


def compare(
    candidates: Sequence[Variant], pods: Sequence[DescribedPod], folder: Path
) -> tuple[ComparedVariant, ...]:
    """Returns what each configuration does with the pods; `folder` is an empty directory.

    Raises:
        CannotAnswerError: the reference does not support a configuration.
    """
    found: list[ComparedVariant] = []
    first: dict[str, bool] = {}
    for number, variant in enumerate(candidates):
        state_dir = folder / str(number)
        state_dir.mkdir()
        one, verdicts = _play(variant, pods, str(state_dir))
        first = first or verdicts
        changed = {pod: verdict for pod, verdict in verdicts.items() if verdict != first[pod]}
        gains = tuple(pod for pod, admitted in changed.items() if admitted)
        losses = tuple(pod for pod, admitted in changed.items() if not admitted)
        found.append(msgspec.structs.replace(one, gains=gains, losses=losses))
    usable = [one for one in found if not (one.refusal or one.crashes)]
    best = max(map(_rank, usable), default=None)
    return tuple(
        msgspec.structs.replace(one, is_best=one in usable and _rank(one) == best) for one in found
    )


def _rank(variant: ComparedVariant) -> tuple[int, ...]:
    return (
        variant.admitted,
        variant.exclusive_cpus,
        variant.aligned_pods,
        -variant.split_cores,
        variant.whole_nodes,
    )


def _play(
    variant: Variant, pods: Sequence[DescribedPod], state_dir: str
) -> tuple[ComparedVariant, dict[str, bool]]:
    """Returns a variant without differences, and whether it admits each pod."""
    reference, start = begin(variant.question, state_dir)
    if isinstance(start, messages.StartRefused):
        errors = why_refused(variant.question, start, variant.adds_defaults)
        return ComparedVariant(variant.name, start, errors), {}
    on_node = readmissions(reference, [one.pod for one in variant.question.pods_on_node])
    arriving = admit_pods(reference, pods, variant.question.names)
    results = {one.pod: one for one in (*on_node, *arriving)}
    evicted = {name for one in arriving for name in one.preempted}
    verdicts = {pod: one.refusal is None and pod not in evicted for pod, one in results.items()}
    node = node_of(reference)
    measured = _measure(variant.name, node, tuple(results.values()), verdicts)
    crashing = () if variant.question.follows_docs else tuple(crashes(node.setup))
    return msgspec.structs.replace(measured, crashes=crashing), verdicts


def _measure(
    name: str, node: StartedNode, results: Sequence[PodResult], verdicts: Mapping[str, bool]
) -> ComparedVariant:
    held = [one.containers or {} for one in results if verdicts[one.pod]]
    alignments = [are_aligned(node, containers) for containers in held]
    owned = [each.exclusive.mask for containers in held for each in containers.values()]
    owned = [mask for mask in owned if mask]
    exclusive = 0
    for mask in owned:
        exclusive |= mask
    topology = node.setup.topology
    split = sum(
        any(mask & core and core & ~mask for mask in owned) for core in topology.cores.values()
    )
    return ComparedVariant(
        name=name,
        admitted=sum(verdicts.values()),
        refused=len(verdicts) - sum(verdicts.values()),
        exclusive_cpus=exclusive.bit_count(),
        aligned_pods=alignments.count(True),
        unaligned_pods=alignments.count(False),
        split_cores=split,
        whole_nodes=sum(bool(cpus) and not cpus & exclusive for cpus in topology.nodes.values()),
        causes=refusal_groups(results),
    )
