"""`numaproof simulate`: would these pods be admitted, and what would they get."""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING, TextIO

import click
from rich import box
from rich.table import Table

from numaproof.catalogue import MACHINE, discover_machine
from numaproof.protocol import codec, messages
from numaproof.reference.kubernetes.releases import RELEASES
from numaproof.reports.terminal import as_plain, encodable
from numaproof.simulation import documents, pods
from numaproof.simulation.admission import CannotAnswerError, Question, Simulation
from numaproof.simulation.admission import simulate as run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.sets import NUMASet

SOME_REFUSED = 1


@click.command()
@click.option("--machine", type=MACHINE, required=True, help="A bundled profile, or a file.")
@click.option("--config", type=click.File(encoding="utf-8"), required=True)
@click.option("--kubernetes", type=click.Choice(RELEASES), default=RELEASES[-1], show_default=True)
@click.option("--documented", is_flag=True, help="Leave out the kubelet's known defects.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.argument("files", metavar="PODS...", type=click.File(encoding="utf-8"), nargs=-1)
def simulate(
    machine: str,
    config: TextIO,
    kubernetes: str,
    files: Iterable[TextIO],
    *,
    documented: bool,
    as_json: bool,
) -> int:
    """Say whether pods would be admitted, one after the other, and which CPUs they would get.

    PODS are manifests of Pods and workloads, - for standard input. A workload counts as one
    pod. Exit code 0: all admitted, 1: a pod or the kubelet's start refused.

    \b
    Example:
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml pods.yaml
    """
    try:
        asked = pods.read((file.name, file.read()) for file in files)
        settings = documents.configuration(config.read(), config.name)
    except UnicodeDecodeError:
        raise click.UsageError("a file is not UTF-8 text; save it as UTF-8") from None
    if not asked.pods:
        raise click.UsageError("no pods in the given files; name manifests of Pods or workloads")
    for note in asked.notes:
        click.echo(note, err=True)
    info = discover_machine(machine, kubernetes)
    question = Question(info, settings, kubernetes, documented)
    with tempfile.TemporaryDirectory() as state_dir:
        try:
            found = run(question, asked.pods, state_dir)
        except CannotAnswerError as error:
            raise click.UsageError(str(error)) from None
    click.echo(codec.encode(found) if as_json else encodable(_told(found), sys.stdout))
    return 0 if found.admitted else SOME_REFUSED


def _told(found: Simulation) -> str:
    if isinstance(found.start, messages.StartRefused):
        return f"The kubelet does not start ({found.start.stage}): {found.start.message}"
    table = Table("pod", "container", "CPUs", "", "memory", "aligned to", box=box.SIMPLE)
    refusals = []
    for one in found.pods:
        if one.refusal:
            table.add_row(one.pod, "", "", "refused", "", "")
            refusals.append(f"{one.pod}: {one.refusal.reason}: {one.refusal.message}")
        for name, held in (one.containers or {}).items():
            kind = "exclusive" if held.exclusive else "shared"
            table.add_row(
                one.pod,
                name,
                str(held.exclusive or held.cpus),
                kind,
                "; ".join(f"{b.size} {_nodes(b.numa)}" for b in held.memory),
                "" if held.affinity.numa is None else _nodes(held.affinity.numa),
            )
    return "\n".join((as_plain(table), f"Shared at the end: {found.shared}", *refusals))


def _nodes(nodes: NUMASet) -> str:
    return f"node {nodes}" if len(nodes) == 1 else f"nodes {nodes}"
