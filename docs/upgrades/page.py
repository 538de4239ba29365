"""Writes docs/upgrades.md: the effects of every upgrade and downgrade on some nodes.

    python docs/upgrades/page.py > docs/upgrades.md

With a kubelet for each release (``--implementation CMD``, repeatable), the kubelets answer instead
of the reference; the page must be the same.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from numaproof.cli.machine_names import read_machine
from numaproof.cli.main import cli
from numaproof.cli.targets import open_target
from numaproof.inputs import documents
from numaproof.inputs.sizes import size
from numaproof.protocol.releases import NEWEST, RELEASES
from numaproof.reference.deviations.releases import release
from numaproof.simulation import upgrades
from numaproof.simulation.pods import DescribedPod
from numaproof.simulation.requests import amount
from numaproof.simulation.upgrades import UpgradeQuestion, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.messages import Container
    from numaproof.simulation.upgrades import Kubelet, PodOutcome, Upgrade

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
EXAMPLES = {
    "openshift": ("1.33", "1.37", "xeon-gold-6230-2s"),
    "strict-reservation": ("1.32", "1.37", "hugepages-2s"),
    "intel-numa": ("1.32", "1.36", "xeon-gold-6230-2s"),
}
"""The published configurations, with their releases and machines."""
SHOWN = "intel-numa"
"""The configuration whose output is on the page in full."""

_TIMEOUT = 30.0
_FATES = {"moves": "gets different CPUs or memory", "changes": "gets", "refused": "is refused"}
_LOST = ("changes", "refused")

Step = tuple[str, str]
"""The release before and the release after."""


@dataclass(frozen=True)
class Node:
    """A node on the page."""

    title: str
    about: str
    machine: str
    config: dict[str, Any]
    pods: tuple[DescribedPod, ...]


def nodes() -> tuple[Node, ...]:
    """Returns the nodes in ``nodes.yaml``."""
    text = (FOLDER / "nodes.yaml").read_text(encoding="utf-8")
    rows = documents.load(text, file="nodes.yaml", aliases=True).data
    return tuple(
        Node(
            row["title"],
            row["about"],
            row["machine"],
            row["config"],
            tuple(map(_pod, row["pods"])),
        )
        for row in rows
    )


def _pod(row: dict[str, Any]) -> DescribedPod:
    spec: dict[str, Any] = {"containers": [_container("main", row)]}
    if "init" in row:
        spec["initContainers"] = [_container("setup", {"limits": row["init"]})]
    if "whole" in row:
        spec["resources"] = {"requests": _texts(row["whole"]), "limits": _texts(row["whole"])}
    metadata = {"name": row["name"], "namespace": "default", "uid": row["name"]}
    return DescribedPod(
        row["name"], {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    )


def _container(name: str, row: dict[str, Any]) -> dict[str, Any]:
    limits = _texts(row.get("limits", {}))
    requests = limits | _texts(row.get("requests", {}))
    return {"name": name, "resources": {"requests": requests, "limits": limits}}


def _texts(amounts: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def node_upgrades(node: Node, kubelet: Kubelet | None) -> dict[Step, Upgrade]:
    """Returns the effect of each step on a node, if its first kubelet starts."""
    found = {}
    machine = read_machine(node.machine, NEWEST).machine
    for before, after in product(RELEASES, RELEASES):
        question = UpgradeQuestion(machine, node.config, before, after)
        with tempfile.TemporaryDirectory() as folder:
            answer = upgrade(question, node.pods, Path(folder), kubelet)
        if answer.today is None:
            found[before, after] = answer
    return found


# Effects as letters


def marks(answer: Upgrade) -> str:
    """Returns the letters for required actions and effects, or an empty string."""
    staying, drained = answer.staying, answer.after_drain
    met = {
        "C": bool(answer.errors),
        "F": bool(staying.refused_files),
        "P": len(staying.having("stays")) < len(staying.pods),
        "D": any(drained.having(fate) for fate in _LOST),
    }
    return "".join(letter for letter, is_met in met.items() if is_met)


def table(letters: Mapping[Step, str]) -> str:
    """Returns a table with a row for each old release and a column for each new release."""
    rows = ["| from \\ to | " + " | ".join(RELEASES) + " |", "|---" * (len(RELEASES) + 1) + "|"]
    for before in RELEASES:
        if any((before, after) in letters for after in RELEASES):
            cells = (letters.get((before, after)) or "✓" for after in RELEASES)
            rows.append(f"| **{before}** | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def joint_letters(node_answers: Iterable[Mapping[Step, Upgrade]]) -> dict[Step, str]:
    """Returns the letters of all nodes, excluding the effects of a mere restart."""
    letters: dict[Step, set[str]] = {}
    for one in node_answers:
        for (before, after), answer in one.items():
            restart = one.get((after, after))
            usual = marks(restart) if restart else ""
            letters.setdefault((before, after), set()).update(set(marks(answer)) - set(usual))
    return {step: "".join(one for one in "CFPD" if one in met) for step, met in letters.items()}


def steps_text(steps: Iterable[Step]) -> str:
    """Formats steps such as ``1.33 or 1.34 to 1.36``, one phrase for each set of new releases."""
    after: dict[str, list[str]] = {}
    for before, then in steps:
        after.setdefault(before, []).append(then)
    phrases = [
        f"{_release_ranges([before for before, _ in group])} to {_release_ranges(ends)}"
        for ends, group in groupby(after.items(), key=lambda item: item[1])
    ]
    return "; ".join(phrases)


def _release_ranges(releases: Sequence[str]) -> str:
    """Formats releases, with consecutive ones as a range."""
    runs: list[list[str]] = []
    for one in releases:
        if runs and RELEASES.index(one) == RELEASES.index(runs[-1][-1]) + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    few = 2
    words = [f"{run[0]}-{run[-1]}" if len(run) > few else ", ".join(run) for run in runs]
    return ", ".join(words)


# Parts of the page


def of_node(node: Node, answers: Mapping[Step, Upgrade]) -> str:
    """Returns the section about a node: what happens to it, and in which steps."""
    events = [f"- {text}" for text in _events(answers)]
    about = f"{node.about[0].upper()}{node.about[1:]}."
    return "\n".join([f"### {node.title}", "", about, "", *events])


def unchanged_nodes(nodes_played: Iterable[tuple[Node, Mapping[Step, Upgrade]]]) -> str:
    """Returns the nodes that no step affects."""
    return "\n".join(f"- {node.about}" for node, found in nodes_played if not any(_events(found)))


def _events(answers: Mapping[Step, Upgrade]) -> Iterator[str]:
    """Yields the steps with effects; steps with the same effects share a line."""
    met: dict[str, list[Step]] = {}
    for step, answer in answers.items():
        for text in _happening(answer):
            met.setdefault(text, []).append(step)
    together: dict[str, list[str]] = {}
    for text, steps in met.items():
        together.setdefault(steps_text(steps), []).append(text)
    for where, texts in together.items():
        yield f"{where}: {'; '.join(texts)}"


def _happening(answer: Upgrade) -> Iterator[str]:
    for error in answer.errors:
        yield f"**C** `{_cause(error.message)}`"
    for file in answer.staying.files:
        if file.effect == "refused":
            drained = file.file in answer.after_drain.refused_files
            more = ", even after a drain" if drained else ""
            yield f"**F** `{file.file}`{more}: `{_cause(file.message)}`"
    fates: dict[str, list[str]] = {}
    for pod in answer.staying.pods:
        if pod.effect != "stays":
            fates.setdefault(_fate(pod), []).append("**P**")
    for pod in answer.after_drain.pods:
        if pod.effect in _LOST:
            fates.setdefault(_fate(pod), []).append("**D**")
    yield from (f"{', '.join(letters)} {fate}" for fate, letters in fates.items())
    if answer.after_drain.having("moves"):
        yield "after a drain, pods get different CPUs or memory"


def _cause(message: str) -> str:
    """Returns a refusal without the kubelet's text around its cause."""
    cause = re.sub(".*(?:from checkpoint|-based config| error): ", "", message)
    return cause.partition(", please drain")[0]


def _fate(pod: PodOutcome) -> str:
    """Describes the result for a pod."""
    return f"`{pod.pod}` {_FATES[pod.effect]}{_difference(pod)}"


def _difference(pod: PodOutcome) -> str:
    if pod.refusal:
        return f", `{pod.refusal.reason}`"
    if pod.effect == "moves":
        return ""
    was, now = (_amount(containers) for containers in (pod.before, pod.after or {}))
    return f" {now} instead of {was}"


def _amount(containers: Mapping[str, Container]) -> str:
    cpus = sum(len(one.exclusive) for one in containers.values())
    memory = sum(block.size for one in containers.values() for block in one.memory)
    if not cpus and not memory:
        return "nothing"
    return amount("cpu", cpus) + (f" and {size(memory)}" if memory else "")


def gates() -> str:
    """Returns the resource managers' gates that are removed or locked, by step."""
    rows = ["| to | gone | locked |", "|---|---|---|"]
    for before, after in pairwise(RELEASES):
        changed = upgrades.gates_of_interest(before, after, {})
        gone = [one.gate for one in changed if one.change == "gone"]
        locked = [
            f"{one.gate}{'' if (one.after or '').endswith('on') else ' (off)'}"
            for one in changed
            if one.change == "locked"
        ]
        if gone or locked:
            rows.append(f"| {after} | {', '.join(gone)} | {', '.join(locked)} |")
    return "\n".join(rows)


def options() -> str:
    """Returns the maturity of each policy option in each release."""
    rows = ["| option | " + " | ".join(RELEASES) + " |", "|---" * (len(RELEASES) + 1) + "|"]
    found = [upgrades.options_of(release(one)) for one in RELEASES]
    for field in found[0]:
        for name in sorted({option for one in found for option in one[field]}):
            cells = (one[field].get(name) or "unknown" for one in found)
            rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def example(name: str, before: str, after: str, machine: str, commands: Sequence[str]) -> str:
    """Returns the command for a published configuration, and its output."""
    given = ["upgrade", "--from", before, "--to", after, "--machine", machine]
    given += ["--config", f"docs/upgrades/{name}.yaml", "--pods", "docs/upgrades/pods.yaml"]
    real = [word for command in commands for word in ("--implementation", command)]
    with contextlib.chdir(ROOT):
        ran = CliRunner().invoke(cli, [*given, *real], standalone_mode=False)
    return f"$ numaproof {' '.join(given)}\n{ran.stdout.rstrip()}"


def summary(name: str, before: str, after: str, machine: str, commands: Sequence[str]) -> str:
    """Returns a published configuration's row: its releases and the first line of output."""
    _, result, *_ = example(name, before, after, machine, commands).splitlines()
    return f"| [{name}](upgrades/{name}.yaml) | {before} to {after} | {result} |"


def page(commands: Sequence[str] = ()) -> str:
    """Returns the whole page; `commands` are kubelets that answer instead of the reference."""
    with open_target(commands, _TIMEOUT, None, None, None) as target:
        found = [(node, node_upgrades(node, target.implementation)) for node in nodes()]
    text = Template((FOLDER / "page.txt").read_text(encoding="utf-8"))
    return text.substitute(
        all=table(joint_letters(one for _, one in found)),
        unchanged=unchanged_nodes(found),
        nodes="\n\n".join(of_node(*one) for one in found if any(_events(one[1]))),
        gates=gates(),
        options=options(),
        published="\n".join(summary(name, *how, commands) for name, how in EXAMPLES.items()),
        example=example(SHOWN, *EXAMPLES[SHOWN], commands),
    )


def main() -> None:
    """Writes the page to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--implementation", action="append", default=[], metavar="CMD")
    sys.stdout.write(page(parser.parse_args().implementation))


if __name__ == "__main__":
    main()
