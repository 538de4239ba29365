"""Checks a kubelet configuration: finds every reason not to start, and suspicious settings.

The kubelet's messages name a flag, an option, a signal, or nothing specific. The table
``refused_fields.yaml`` maps them to fields.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.inputs import documents, typed
from numaproof.inputs.documents import PathTuple, dotted_path
from numaproof.inputs.names import suggestion
from numaproof.protocol import messages
from numaproof.reference.config import flags
from numaproof.reference.pods import quantity
from numaproof.simulation import defects, flag_fields, lint, state_files
from numaproof.simulation.admission import CannotAnswerError, Question, node_of, start_reference
from numaproof.simulation.setting_names import meant_name
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.node import NodeSetup


ConfigFields = dict[str, Any]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maps a kubelet message to a field, as explained in ``refused_fields.yaml``.

    `section` names the page of the Kubernetes documentation. `elsewhere` is whether the refusal may
    be for lack of a setting that products add.
    """

    pattern: str
    path: tuple[str, ...]
    fix: str
    section: str
    cure: Literal["", "cpu", "memory"] = ""
    elsewhere: bool = False
    others: tuple[PathTuple, ...] = ()


def _with_reserved_cpu(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """Returns the configuration with the machine's first core reserved, and no other CPUs."""
    cores = (core for node in machine.topology or () for core in node.cores or ())
    threads = [sorted(core.thread_ids) for core in cores if core.thread_ids]
    if not threads:
        return config
    reserved = {**config, "reservedSystemCPUs": ",".join(map(str, min(threads)))}
    for name in ("kubeReserved", "systemReserved"):
        if isinstance(given := config.get(name), dict):
            reserved[name] = {key: text for key, text in given.items() if key != "cpu"}
    return reserved


def _with_reserved_memory(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """Returns the configuration with consistent memory reservations and without huge pages."""
    room = {node.node_id: node.memory for node in machine.topology or ()}
    nodes = sorted(room)
    amounts = {nodes[0] if nodes else 0: 100 << 20}
    for entry in config.get("reservedMemory") or []:
        named, limits = (entry or {}).get("numaNode") or 0, (entry or {}).get("limits") or {}
        if named in nodes and limits.get("memory") is not None:
            amount = max(quantity.value(limits["memory"]), 1 << 20)
            amounts[named] = amount if amount <= room[named] else 1 << 20
    kept = [{"numaNode": node, "limits": {"memory": str(size)}} for node, size in amounts.items()]
    without = {**config, "reservedMemory": kept, "evictionHard": {"nodefs.available": "10%"}}
    for name in ("kubeReserved", "systemReserved"):
        given = config.get(name) or {}
        without[name] = {key: text for key, text in given.items() if key != "memory"}
    without["systemReserved"]["memory"] = str(sum(amounts.values()))
    return without


@cache
def rules() -> tuple[Rule, ...]:
    """Returns the rules, in the order in which they are tried."""
    text = Path(__file__).with_name("refused_fields.yaml").read_text(encoding="utf-8")
    document = documents.load(text, file="refused_fields.yaml")
    return typed.convert(document, tuple[Rule, ...])


def apply_cure(rule: Rule, config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """Applies the rule's cure: adds a reservation that avoids the rule's error."""
    cures = {"cpu": _with_reserved_cpu, "memory": _with_reserved_memory}
    return cures[rule.cure](config, machine)


UNKNOWN = Rule("", (), "change or remove it", "")
"""The rule for messages that match no other."""


def rule_for(stage: str, message: str) -> tuple[Rule, PathTuple] | None:
    """Finds the rule that matches the message, and the path of the field; None if none matches."""
    for text in (message, f"stage {stage}: {message}"):
        for rule in rules():
            found = re.search(rule.pattern, text)
            if found:
                groups = {name: part or "" for name, part in found.groupdict().items()}
                return rule, tuple(step.format(**groups) for step in rule.path)
    return None


_VALIDATION = "failed to validate kubelet configuration, error: "
_INVALID = "invalid configuration: "


class ConfigurationFinding(msgspec.Struct, frozen=True):
    """An error, a warning, or a fault of the reference, about the field at a path.

    The `message` of an error is the kubelet's. `fix` says how to fix it, and `section` names the
    page of the Kubernetes documentation about it. If a product sets what is missing by default,
    `set_by` names it, and the finding is a warning.
    """

    severity: Literal["error", "warning", "fault"]
    path: tuple[str | int, ...]
    message: str
    fix: str
    section: str = ""
    set_by: str = ""


MAX_ERRORS = 100
"""Maximum number of errors to find, because each takes another start."""

MAX_TRIALS = 200
"""Maximum number of parts of a value to remove in turn when searching for the refused one.

If none of them is found, the error is about the whole value. A configuration has 130 fields."""

_MORE = ConfigurationFinding(
    "error", (), f"... and more than these {MAX_ERRORS}", "fix these, and check again"
)


class ConfigurationVerdict(msgspec.Struct, frozen=True):
    """The findings in a configuration, and the configuration without the refused parts."""

    findings: tuple[ConfigurationFinding, ...]
    fixed_config: messages.KubeletConfiguration


def judge(question: Question, adds_defaults: str = "") -> ConfigurationVerdict:
    """Finds the errors in a configuration, in the order of failed starts, and then warnings.

    After each refusal, the refused part is fixed or removed, and the kubelet is started again with
    the rest, until nothing is refused.

    Args:
        question: the configuration, and the machine.
        adds_defaults: the product that may add settings to the configuration; empty if none does.

    Raises:
        CannotAnswerError: the reference does not support the configuration.
    """
    found = [*refused_flags(question)]
    refused = {dotted_path(one.path) for one in found}
    kept = (one for one in question.flags if one.partition("=")[0] not in refused)
    question = msgspec.structs.replace(question, flags=tuple(kept))
    seen: list[messages.StartRefused] = []
    config = dict(question.config)
    answer, setup = _start(question, config)
    while isinstance(answer, messages.StartRefused):
        if answer in seen:
            after: dict[str, Any] = _without(config, _by_trial(question, config, answer))
        else:
            seen.append(answer)
            after = _fix_refused(question, config, answer, found, adds_defaults)
        if len(found) >= MAX_ERRORS and after != config:
            found.append(_MORE)
        if after == config or len(found) > MAX_ERRORS:
            return ConfigurationVerdict(tuple(found), config)
        config = after
        answer, setup = _start(question, config)
    if isinstance(answer, messages.Unsupported):
        path = _by_trial(question, config, answer)
        raise CannotAnswerError(f"not supported: {answer.what}", path)
    if isinstance(answer, messages.Fault):
        fix = "this is a bug in numaproof, not in the file; please report it"
        message = f"the reference failed: {answer.message}"
        found.append(ConfigurationFinding("fault", (), message, fix))
    if setup is not None:
        found += _warnings(question, config, setup, tuple(found))
    return ConfigurationVerdict(tuple(found), config)


def why_refused(
    question: Question, start: messages.StartRefused, adds_defaults: str = ""
) -> tuple[ConfigurationFinding, ...]:
    """Returns why a kubelet doesn't start, if the configuration is the reason.

    The arguments are those of `judge`, and the kubelet's answer.
    """
    if question.state and state_files.refused_file(start):
        return ()
    # With other settings, the state files may be refused; that isn't a configuration error.
    found = judge(msgspec.structs.replace(question, state=None), adds_defaults).findings
    return tuple(one for one in found if one.severity == "error" or one.set_by)


def refused_flags(question: Question) -> Iterator[ConfigurationFinding]:
    """Yields the errors in the command line, before the kubelet reads its configuration."""
    for argument in question.flags:
        problem = flag_fields.refusal(argument, question.kubernetes)
        if problem is not None:
            name = argument.partition("=")[0]
            known = flags.table()[question.kubernetes]
            fix = UNKNOWN.fix
            if name.removeprefix("--") not in known:
                fix = suggestion(name, (f"--{one}" for one in known))
            yield ConfigurationFinding("error", (name,), problem, fix)


def shaped_findings(
    question: Question, verdict: ConfigurationVerdict, adds_defaults: str = ""
) -> tuple[defects.DefectNote, ...]:
    """Returns notes on the findings affected by named defects of the kubelet.

    The arguments are those of `judge`, and its verdict.

    Raises:
        CannotAnswerError: as for `judge`.
    """

    def by_text(config_verdict: ConfigurationVerdict) -> dict[tuple[str, str], object]:
        return {(dotted_path(one.path), one.message): one for one in config_verdict.findings}

    def ask(without: frozenset[str]) -> dict[tuple[str, str], object]:
        asked = msgspec.structs.replace(question, exceptions=without)
        return by_text(judge(asked, adds_defaults))

    return defects.notes((question.kubernetes,), by_text(verdict), ask)


def _warnings(
    question: Question,
    fixed_config: dict[str, Any],
    setup: NodeSetup,
    findings: Sequence[ConfigurationFinding],
) -> Iterator[ConfigurationFinding]:
    """Yields warnings about fields that the fixes left unchanged and that have no error."""
    for warning in lint.warnings(fixed_config, question.kubernetes, setup):
        path = warning[0]
        related = _depends_on_invalid(path, _invalid_paths(question.config, fixed_config, findings))
        related = related or any(_are_related(path, one.path) for one in findings)
        if not related and _is_as_written(question.config, fixed_config, path):
            yield ConfigurationFinding("warning", *warning)


_DEPENDENT: Mapping[PathTuple, tuple[str, ...]] = {
    ("cpuManagerPolicy",): ("cpuManagerPolicyOptions", "topologyManagerPolicy"),
    ("memoryManagerPolicy",): ("reservedMemory", "topologyManagerPolicy"),
    ("topologyManagerPolicy",): ("topologyManagerScope", "topologyManagerPolicyOptions"),
}
"""The fields whose effect depends on a policy, and is unknown while the policy is invalid."""


def _is_as_written(written_config: Any, fixed_config: Any, path: PathTuple) -> bool:
    """Whether the fixed configuration has the same value at a path as the original one."""
    depth, value = _deepest(written_config, path)
    kept, other = _deepest(fixed_config, depth)
    return bool(depth) and value == (other if kept == depth else None)


def _are_related(path: PathTuple, other: PathTuple) -> bool:
    return all(mine == others for mine, others in zip(path, other, strict=False))


def _start(question: Question, config: dict[str, Any]) -> tuple[messages.Answer, NodeSetup | None]:
    with scratch_folder() as folder:
        left = flag_fields.remaining(question.flags, question.config, config)
        asked = msgspec.structs.replace(question, config=config, flags=left)
        reference, answer = start_reference(asked, str(folder))
    is_up = isinstance(answer, messages.Started)
    return answer, node_of(reference).setup if is_up else None


def _fix_refused(
    question: Question,
    config: dict[str, Any],
    refusal: messages.StartRefused,
    findings: list[ConfigurationFinding],
    adds_defaults: str,
) -> dict[str, Any]:
    """Adds the refused parts to `findings`, and returns the configuration without them."""
    after = config
    for problem in _problems(refusal.message):
        rule, meant = rule_for(refusal.stage, problem) or (UNKNOWN, ())
        paths = [path for path in (meant, *rule.others) if path and path[0] in config]
        whole = [path for path in paths if _deepest(config, path)[0] == path]
        if paths:
            path = _refine_path(question, config, (whole or paths)[0], rule)
        else:
            path = _by_trial(question, config, refusal)
        where, _ = _deepest(question.config, path)
        name = meant_name(config, path, question.kubernetes)
        invalid_paths = _invalid_paths(question.config, config, findings)
        if not _depends_on_invalid(where, invalid_paths) and not _is_refused(rule, invalid_paths):
            findings.append(_finding(rule, where, problem, name, adds_defaults))
        if name and len(path) == 1:
            after = {**after, str(path[0]): name}
        elif rule.cure:
            after = apply_cure(rule, after, question.machine)
        else:
            after = _without(after, path)
    if after == config:
        after = _without(config, _by_trial(question, config, refusal))
    return after


def _finding(
    rule: Rule, where: PathTuple, problem: str, name: str, adds_defaults: str
) -> ConfigurationFinding:
    """Returns a problem as a finding; `name` is the name to write instead, if one is misspelt."""
    fix = rule.fix
    if name:
        # A key may be superfluous instead.
        fix = f"did you mean {name}?" + (f" If not, {fix}" if len(where) > 1 else "")
    if not (rule.elsewhere and adds_defaults):
        return ConfigurationFinding("error", where, problem, fix, rule.section)
    fix = f"{adds_defaults} may set what is missing; if not, {fix}"
    if adds_defaults not in _RESERVING:
        return ConfigurationFinding("error", where, problem, fix, rule.section)
    return ConfigurationFinding("warning", where, problem, fix, rule.section, adds_defaults)


_RESERVING = ("AKS", "Bottlerocket", "EKS", "GKE", "Gardener", "Karpenter", "OpenShift", "Talos")
"""The products that reserve CPUs and memory by default."""


def _invalid_paths(
    written_config: Any, fixed_config: Any, findings: Sequence[ConfigurationFinding]
) -> list[PathTuple]:
    """Returns the paths of the parts that were refused, and fixed or removed."""
    paths = (one.path for one in findings)
    return [path for path in paths if not _is_as_written(written_config, fixed_config, path)]


def _depends_on_invalid(path: PathTuple, invalid_paths: Sequence[PathTuple]) -> bool:
    """Whether the effect of a field is unknown because the policy it depends on is invalid."""
    return any(path[:1] and path[0] in _DEPENDENT.get(one[:1], ()) for one in invalid_paths)


def _is_refused(rule: Rule, invalid_paths: Sequence[PathTuple]) -> bool:
    """Whether the reservation that a rule misses is there, but was refused and removed."""
    return rule.elsewhere and any(
        _reserving_field(one) in _RESERVATIONS[rule.cure]
        and (len(one) == 1 or one[0] not in _AMOUNTS or one[1] == rule.cure)
        for one in invalid_paths
    )


def _reserving_field(path: PathTuple) -> str:
    """Returns the field at the start of a path, also if that is a flag."""
    first = str(path[0]) if path else ""
    return flag_fields.field(first.removeprefix("--")) if first.startswith("--") else first


_AMOUNTS = ("kubeReserved", "systemReserved")
_RESERVATIONS = {
    "": (),
    "cpu": (*_AMOUNTS, "reservedSystemCPUs"),
    "memory": (*_AMOUNTS, "evictionHard"),
}
"""The fields that reserve what a cure adds."""


def _problems(message: str) -> Iterator[str]:
    """Splits a message into problems, because the kubelet's validation reports them all at once."""
    if not message.startswith(_VALIDATION):
        yield message
        return
    text = message.removeprefix(_VALIDATION).removeprefix("[")
    several = message.endswith("]") and _VALIDATION + "[" in message
    for part in (text[:-1] if several else text).split(_INVALID):
        if part:
            yield part.removesuffix(", ")


def _refine_path(
    question: Question, config: dict[str, Any], path: PathTuple, rule: Rule
) -> PathTuple:
    """Finds the smallest part of the value at a path whose removal avoids the rule's error."""
    there, value = _deepest(config, path)
    if there != path:
        return path

    def is_gone(answer: messages.Answer) -> bool:
        return not (isinstance(answer, messages.StartRefused) and _applies(rule, answer))

    return _narrow_path(question, config, path, value, is_gone)


def _narrow_path(
    question: Question,
    config: dict[str, Any],
    path: PathTuple,
    value: Any,
    is_meant: Callable[[messages.Answer], bool],
) -> PathTuple:
    """Finds the smallest part of the value at a path whose removal leads to an expected answer."""
    while isinstance(value, dict | list):
        steps: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        # Policies come last: usually the policy is intended, and a setting it needs is wrong.
        steps.sort(key=lambda step: str(step).endswith("Policy"))
        for step in steps[:MAX_TRIALS]:
            if is_meant(_start(question, _without(config, (*path, step)))[0]):
                path, value = (*path, step), value[step]
                break
        else:
            break
    return path


def _applies(rule: Rule, refusal: messages.StartRefused) -> bool:
    known = (rule_for(refusal.stage, one) for one in _problems(refusal.message))
    return any(one is not None and one[0] is rule for one in known)


def _by_trial(
    question: Question, config: dict[str, Any], first_answer: messages.Answer
) -> PathTuple:
    """Finds the smallest part of the configuration whose removal changes the answer."""
    return _narrow_path(question, config, (), config, lambda answer: answer != first_answer)


def _without(config: Any, path: PathTuple) -> Any:
    if not path:
        return config
    step, rest = path[0], path[1:]
    if isinstance(config, list) and isinstance(step, int):
        if not rest:
            return [value for place, value in enumerate(config) if place != step]
        return [
            _without(value, rest) if place == step else value for place, value in enumerate(config)
        ]
    if not isinstance(config, dict) or step not in config:
        return config
    if not rest or not isinstance(config[step], dict | list):
        return {key: value for key, value in config.items() if key != step}
    return {**config, step: _without(config[step], rest)}


def _deepest(config: Any, path: PathTuple) -> tuple[PathTuple, Any]:
    """Returns the longest part of a path that exists in the configuration, and the value there."""
    for length, step in enumerate(path):
        known = range(len(config)) if isinstance(config, list) else config
        if not (isinstance(known, dict | range) and step in known):
            return path[:length], config
        config = config[step]
    return path, config
