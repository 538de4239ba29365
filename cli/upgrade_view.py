"""Formats the result of `numaproof upgrade` as lines of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from numaproof.cli.simulate_view import block_text, note_lines
from numaproof.inputs.documents import dotted_path
from numaproof.inputs.plurals import format_numbers, plural
from numaproof.protocol.messages import AdmissionRefused, StartRefused
from numaproof.simulation.configuration_check import ConfigurationFinding
from numaproof.simulation.state_files import STATE_DIR, refused_file
from numaproof.simulation.unknown_devices import unknown_text
from numaproof.simulation.upgrades import FileOutcome, PodOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.inputs.documents import Document
    from numaproof.protocol.messages import Container
    from numaproof.simulation.upgrades import Effect, GateChange, OptionChange, Upgrade

_SIGNS = {"good": ("✓", "green"), "note": ("~", "yellow"), "bad": ("✗", "red")}
_FATES: dict[Effect, str] = {"stays": "good", "moves": "note", "changes": "bad", "refused": "bad"}
_OTHERWISE: dict[Effect, str] = {"moves": "moved", "changes": "changed", "refused": "refused"}
_SHARED = "the shared pool"
_READ = {"read": "read unchanged", "rewritten": "read and converted to the new format"}


@dataclass(frozen=True)
class Setting:
    """The input: the machine's name, the configuration, and whether pods and state were given."""

    machine: str
    document: Document | None
    pods: bool
    state: bool


def upgrade_lines(answer: Upgrade, setting: Setting) -> Iterator[Text]:
    """Yields the lines of the answer."""
    for line in _UpgradeReport(answer, setting).lines():
        text = line if isinstance(line, Text) else Text(line)
        for sign, color in _SIGNS.values():
            text.highlight_regex(rf"^ *{sign}(?= )", color)
        yield text


class _UpgradeReport:
    def __init__(self, answer: Upgrade, setting: Setting) -> None:
        self._answer = answer
        self._setting = setting

    def lines(self) -> Iterator[str | Text]:
        answer = self._answer
        mark = "bad" if self._is_blocked else "note" if answer.attention else "good"
        yield f"{self._sign(mark)} {self._headline()}"
        yield f"machine {self._setting.machine} · Kubernetes {answer.before} to {answer.after}"
        yield from self._part("Before the upgrade", self._today())
        yield from self._part("Configuration", self._configuration())
        yield from self._part("Feature gates", [self._gate(one) for one in answer.gates])
        yield from self._part("Policy options", [self._option(one) for one in answer.options])
        yield from self._part("Files", self._files())
        yield from self._part("Pods that stay on the node", self._staying())
        yield from self._part("With a drain", self._drain_lines())
        shaped = (self._line("note", line) for line in note_lines(answer.warnings, _outcome))
        yield from self._part("Defects of the kubelet", shaped)
        steps = enumerate(self._steps(), 1)
        yield from self._part("To do", (f"  {number}. {step}" for number, step in steps))

    @property
    def _is_blocked(self) -> bool:
        answer = self._answer
        return bool(answer.errors or answer.staying.refused_files or not answer.staying.starts)

    def _headline(self) -> str:
        return "; ".join((self._verdict(), *self._gaps()))

    def _gaps(self) -> Iterator[str]:
        """Yields what the answer does not cover."""
        if self._answer.absent:
            yield f"without {_and(self._answer.absent)}"
        if self._answer.unknown_devices:
            yield f"without {_and(list(self._answer.unknown_devices))}"
        if unknown := len(self._answer.unknown):
            yield f"{plural(unknown, 'pod')} in the state files not evaluated"

    def _verdict(self) -> str:
        answer, staying = self._answer, self._answer.staying
        kubelet = f"The kubelet of {answer.after}"
        if answer.errors:
            return f"{kubelet} does not start with this configuration"
        if staying.refused_files:
            return f"{kubelet} does not start with {_and(staying.refused_files)}"
        if not staying.starts:
            return f"{kubelet} does not start"
        if not staying.pods:
            return f"{kubelet} starts"
        one = len(staying.pods) == 1
        pods = plural(len(staying.pods), "pod")
        counts = [(len(staying.having(fate)), word) for fate, word in _OTHERWISE.items()]
        what = [f"{count} {word}" for count, word in counts if count]
        if what:
            return f"{kubelet} starts; of {pods} on the node, {_and(what)}"
        lost = len(answer.after_drain.having("changes")) + len(answer.after_drain.having("refused"))
        keep = "keeps its resources" if one else "keep their resources"
        again = "its resources" if lost == 1 else "their resources"
        drain = f"; after a drain, {plural(lost, 'pod')} would not get {again} back" if lost else ""
        return f"{kubelet} starts, and {pods} {keep}{drain}"

    # Each part

    def _today(self) -> Iterator[str]:
        answer = self._answer
        for error in answer.errors_today:
            yield self._error(error)
        if answer.today and not answer.errors_today:
            yield self._line("bad", f"the kubelet does not start: {answer.today.message}")

    def _configuration(self) -> Iterator[str]:
        yield from map(self._error, self._answer.errors)
        for one in self._answer.product_settings:
            yield self._error(one, "note")
        if self._answer.product_settings:
            yield self._line("note", "this answer assumes a minimal reservation")

    def _error(self, finding: ConfigurationFinding, mark: str = "bad") -> str:
        document = self._setting.document
        where = "{}:{}: ".format(*document.locate(finding.path)) if document else ""
        field = f"{dotted_path(finding.path)}: " if finding.path else ""
        return self._line(mark, f"{where}{field}{finding.message} ({finding.fix})")

    def _gate(self, gate_change: GateChange) -> str:
        given = (
            ""
            if gate_change.configured_value is None
            else f", {str(gate_change.configured_value).lower()} in the configuration"
        )
        wrong = gate_change.configured_value is not None and gate_change.change == "gone"
        change = f"{gate_change.before or 'unknown'} → {gate_change.after or 'gone'}"
        return self._line("bad" if wrong else "note", f"{gate_change.gate}: {change}{given}")

    def _option(self, option_change: OptionChange) -> str:
        change = f"{option_change.before or 'unknown'} → {option_change.after or 'gone'}"
        return self._line(
            "note" if option_change.after else "bad", f"{option_change.option}: {change}"
        )

    def _files(self) -> Iterator[str]:
        for name in self._answer.absent:
            text = "absent; assuming that pods got their resources in the order of their age"
            yield self._line("note", f"{name}: {text}")
        yield from (self._file(one) for one in self._answer.staying.files)

    def _file(self, outcome: FileOutcome) -> str:
        if outcome.effect == "refused":
            return self._line("bad", f"{outcome.file}: refused: {outcome.message}")
        return self._line("good", f"{outcome.file}: {_READ[outcome.effect]}")

    def _staying(self) -> Iterator[str]:
        answer = self._answer
        for uid in answer.unknown:
            text = "has CPUs or memory in the state files, but is not among the pods"
            yield self._line("note", f"{uid}: {text}")
        for name in answer.never_here:
            text = f"refused by the kubelet of {answer.before}, so it is not on the node"
            yield self._line("note", f"{name}: {text}")
        shared = [pod for pod in answer.staying.pods if _is_shared(pod)]
        for pod in answer.staying.pods:
            if pod not in shared:
                yield from self._pod(pod)
        if shared:
            pods = plural(len(shared), "pod")
            yield self._line("good", f"{pods} without exclusive resources: in the shared pool")
        if answer.unknown_devices:
            yield self._line("note", unknown_text(answer.unknown_devices))
        if self._setting.state and not self._setting.pods:
            yield self._line("note", "give the node's pods with --pods to see what they would lose")

    def _pod(self, pod: PodOutcome) -> Iterator[str]:
        mark = _FATES[pod.effect]
        if pod.refusal:
            said = f"{pod.refusal.reason}: {pod.refusal.message}"
            yield self._line(mark, f"{pod.pod}: refused: {said}")
            return
        assert pod.after is not None
        for name, after in pod.after.items():
            was, now = _own_resources(pod.before[name]), _own_resources(after)
            if pod.effect == "stays":
                yield self._line(mark, f"{pod.pod}/{name}: keeps {now}")
            elif was != now:
                yield self._line(mark, f"{pod.pod}/{name}: {was} → {now}")

    def _drain_lines(self) -> Iterator[str]:
        drained = self._answer.after_drain
        for file in drained.refused_files:
            yield self._line("bad", f"{file}: refused even without pods on the node")
        if unknown := len(self._answer.unknown):
            yield self._line("note", f"{plural(unknown, 'pod')} in the state files not evaluated")
        if not drained.pods:
            return
        others = [pod for pod in drained.pods if pod.effect != "stays"]
        lost = any(pod.effect != "moves" for pod in others)
        counts = {fate: len(drained.having(fate)) for fate in ("moves", "changes", "refused")}
        said = f"{counts['moves']} moved, {counts['changes']} changed"
        yield self._line(
            "bad" if lost else "good",
            f"{plural(len(drained.pods), 'pod')} to restart: {said}, {counts['refused']} refused",
        )
        for pod in others:
            yield from self._pod(pod)

    def _steps(self) -> Iterator[str]:
        answer, staying = self._answer, self._answer.staying
        if answer.today:
            check = "state check" if refused_file(answer.today) else "config check"
            yield f"make the kubelet of {answer.before} start; see `numaproof {check}`"
        if answer.errors:
            yield "fix the configuration; the rest of this answer assumes that it is fixed"
        if not staying.starts:
            yield "fix the configuration; see `numaproof config check`"
        files = tuple(dict.fromkeys((*staying.refused_files, *answer.after_drain.refused_files)))
        if files:
            yield "drain the node and stop the kubelet"
            yield f"delete {_and([f'{STATE_DIR}/{file}' for file in files])}"
            yield f"start the kubelet of {answer.after}, which creates new files"
        elif len(staying.having("stays")) < len(staying.pods):
            yield "drain the node before the upgrade, so that no running pod loses resources"

    # Words

    def _part(self, title: str, lines: Sequence[str] | Iterator[str]) -> Iterator[str | Text]:
        listed = list(lines)
        if listed:
            yield ""
            yield Text(title, "bold")
            yield from listed

    def _line(self, mark: str, text: str) -> str:
        return f"  {self._sign(mark)} {text}"

    def _sign(self, mark: str) -> str:
        return _SIGNS[mark][0]


def _outcome(answer: object) -> str:
    text = "no such change"
    match answer:
        case StartRefused():
            text = f"the kubelet does not start: {answer.message}"
        case ConfigurationFinding():
            text = f"error: {answer.message}"
        case FileOutcome():
            text = f"{answer.file} is {answer.effect}"
        case PodOutcome(refusal=AdmissionRefused() as refusal):
            text = f"refused: {refusal.reason}: {refusal.message}"
        case PodOutcome(after=dict() as after):
            held = (f"{name} {answer.effect}: {_own_resources(one)}" for name, one in after.items())
            text = "; ".join(held)
        case bool():
            text = "the kubelet starts" if answer else "the kubelet does not start"
        case str():
            text = answer
    return text


def _is_shared(pod: PodOutcome) -> bool:
    """Whether a pod has no exclusive resources, either before or after the change."""
    held = (*pod.before.values(), *(pod.after or {}).values())
    return pod.effect == "stays" and all(_own_resources(one) == _SHARED for one in held)


def _and(items: Sequence[str]) -> str:
    return " and ".join(items)


def _own_resources(container: Container) -> str:
    exclusive = container.exclusive
    parts = [format_numbers("CPU", exclusive) if exclusive else _SHARED]
    parts += [block_text(block) for block in container.memory if block.size]
    parts += [f"{name} {' '.join(ids)}" for name, ids in (container.devices or {}).items() if ids]
    return ", ".join(parts)
