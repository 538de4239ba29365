"""`numaproof simulate`: shows which pods a node would admit, what they would get, and why."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli import user_files
from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.fleet import is_given, read_and_simulate
from numaproof.cli.fleet_nodes import FleetOptions
from numaproof.cli.machine_names import (
    node_devices_option,
    node_machine_option,
    read_machine,
    split_node,
)
from numaproof.cli.ordered_options import ALL, OrderedCommand
from numaproof.cli.outputs import OUTPUT_FILE, require_no_input
from numaproof.cli.targets import own_baseline_option, release_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from numaproof.cli.captured_nodes import NodeFile
    from numaproof.inputs.documents import Document
    from numaproof.reports.answers import AnswerReport
    from numaproof.simulation.admission import Question
    from numaproof.simulation.comparison import Variant
    from numaproof.simulation.fleet import FleetSimulation
    from numaproof.simulation.pods import DescribedPod
    from numaproof.simulation.what_ifs import Action, NodeSimulation, Wishes

SOME_REFUSED = 1


@click.command(cls=OrderedCommand)
@captured_node_option(
    necessary=("machine", "configs"),
    fleet="nodes",
    machine="machine",
    config="configs",
    state="state",
    pods="on_node",
    release="kubernetes",
)
@node_machine_option
@user_files.config_option(is_required=True)
@node_devices_option
@user_files.replicas_option
@user_files.node_name_option
@release_option
@own_baseline_option
@click.option(
    "--state",
    type=user_files.USER_FOLDER,
    metavar="DIR",
    help="Start from a node's state: its /var/lib/kubelet or a copy, which is not changed.",
)
@click.option(
    "--pods-on-node",
    "on_node",
    type=user_files.USER_FILE,
    multiple=True,
    metavar="FILE",
    help="The pods on that node: the output of kubectl get pods -o json or yaml, or a directory of"
    " such files. Repeatable.",
)
@click.option(
    "--remove",
    metavar="POD",
    multiple=True,
    help="Then remove a pod. Repeatable; what-ifs are played in the order given.",
)
@click.option("--restart", count=True, help="Then restart the kubelet. Repeatable.")
@click.option(
    "--then",
    "later",
    type=user_files.USER_FILE,
    multiple=True,
    metavar="FILE",
    help="Then admit the pods of another file. Repeatable.",
)
@click.option(
    "--compare",
    multiple=True,
    metavar="KEY=VALUE,...|FILE",
    help="Also try other values of a setting, such as topologyManagerPolicy=restricted,none or"
    " cpuManagerPolicyOptions.full-pcpus-only=true, or another configuration, and compare."
    " Repeatable: tries every combination of values.",
)
@click.option(
    "--explain",
    is_flag=False,
    flag_value=ALL,
    multiple=True,
    metavar="[POD]",
    help="Also explain admitted pods. With POD, explain that pod and, if it is refused, show which"
    " pods would have to go. Repeatable.",
)
@click.option(
    "--out",
    "outs",
    type=OUTPUT_FILE,
    multiple=True,
    metavar="FILE.html|FILE.svg",
    help="Also write the answer as a web page or a drawing. Repeatable.",
)
@click.option(
    "--nrt",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also write the node after the last step as a NodeResourceTopology.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also exit with 1 if a known defect of the kubelet affects an answer, or can make it"
    " panic or hang.",
)
@user_files.lenient_option
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.argument("files", metavar="PODS...", type=user_files.USER_FILE, nargs=-1)
def simulate(
    *,
    nodes: tuple[NodeFile, ...],
    machine: str,
    assume: tuple[tuple[str, int], ...],
    configs: tuple[user_files.UserFile, ...],
    devices: tuple[str, ...],
    replicas: int | None,
    node_name: str,
    kubernetes: str,
    state: user_files.UserFile | None,
    on_node: tuple[user_files.UserFile, ...],
    remove: tuple[str, ...],
    restart: int,
    later: tuple[user_files.UserFile, ...],
    outs: tuple[Path, ...],
    nrt: Path | None,
    files: tuple[user_files.UserFile, ...],
    baseline: str,
    compare: tuple[str, ...],
    explain: tuple[str, ...],
    strict: bool,
    lenient: bool,
    as_json: bool,
) -> int:
    """Show which pods a node would admit and what they would get.

    PODS are files and directories with Pods and workloads, admitted in order; - reads standard
    input. A workload stands for all of its replicas. Pods that have ended hold nothing. Warnings
    name known defects of the kubelet that make an answer differ from the documentation.

    The node is empty, or continues from its --state like a kubelet that restarts. The answer then
    shows who holds what on each NUMA node.

    Exit codes: 0 all pods admitted, 1 a pod was refused or the kubelet does not start (with
        --strict, also if there are only warnings), 2 invalid input.

    \b
    Examples:
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml pods.yaml
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml \\
        --devices vendor.example/nic=2@0 --out node.html pods.yaml
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml --json - < pods.yaml
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml pods.yaml \\
        --compare topologyManagerPolicy=restricted,single-numa-node
      numaproof simulate --machine laptop-4c8t --config kubelet.yaml --state kubelet \\
        --pods-on-node on-node.yaml pods.yaml --remove web --restart
    """
    if nodes:
        options = FleetOptions(
            configs=configs,
            devices=devices,
            kubernetes=kubernetes if is_given("kubernetes") else "",
            newest=kubernetes,
            assume=assume,
            follows_docs=baseline == "documented",
            lenient=lenient,
        )
        fleet = read_and_simulate(nodes, files, options, replicas=replicas, node_name=node_name)
        return _answer_fleet(fleet, as_json=as_json)
    from msgspec.structs import replace

    from numaproof.cli.node_files import (
        read_state,
        read_variants,
        require_pods_on_node,
        what_ifs,
        wishes_of,
    )
    from numaproof.cli.node_view import assumptions
    from numaproof.cli.simulate_view import answer
    from numaproof.protocol.messages import StartRefused
    from numaproof.reports.answers import WRITERS
    from numaproof.reports.untrusted_text import visible
    from numaproof.simulation import configuration_check
    from numaproof.simulation import devices as given_devices
    from numaproof.simulation.admission import Question
    from numaproof.workdir.output_files import write_file

    read = (*configs, *files, *on_node, *later, *((state,) if state else ()))
    _check_outputs(outs, nrt, read, (machine, *devices, *compare))
    user_files.check_read_once(read)
    settings, asked = user_files.read_node(
        configs, files, (kubernetes,), lenient=lenient, replicas=replicas, node_name=node_name
    )
    assert settings is not None
    for note in asked.notes:
        click.echo(note, err=True)
    if files or not (state or on_node or remove or restart or later):
        user_files.require_pods(asked, files)
    text = read_machine(machine, kubernetes, assume)
    node = read_state(state, on_node, kubernetes, lenient=lenient, node_name=node_name)
    plugins, unsure = given_devices.as_recorded(
        given_devices.read(devices, text.machine), node.devices
    )
    described = user_files.machine_for(
        settings.settings,
        text.with_known_devices(given_devices.counts(plugins)),
        release="" if is_given("kubernetes") else kubernetes,
        state=state is not None,
    )
    actions = what_ifs(
        click.get_current_context(), remove, later, kubernetes, lenient=lenient, replicas=replicas
    )
    question = Question(
        described.machine,
        settings.settings,
        kubernetes,
        baseline == "documented",
        plugins,
        flags=settings.flags,
        state=node.state,
        unknown_memory=described.unknown_memory,
    )
    require_pods_on_node(question, on_node)
    for note in (*node.notes, *unsure):
        click.echo(note, err=True)
    tried = read_variants(compare, question, settings.adds_defaults, lenient=lenient)
    wishes = wishes_of(explain, question, asked.pods, actions)
    found = _simulate(question, asked.pods, actions, wishes, tried, settings.document)
    notes = (*described.lines, *settings.notes, *asked.notes, *node.notes, *unsure)
    notes = (*notes, *assumptions(question))
    found = replace(found, notes=notes)
    if isinstance(found.start, StartRefused):
        errors = configuration_check.why_refused(question, found.start, settings.adds_defaults)
        found = replace(found, errors=errors)
    report = answer(found, question, machine, wishes.explain_pods, settings.adds_defaults)
    for out in outs:
        write_file(out, visible(WRITERS[out.suffix](report)))
    if nrt is not None:
        write_file(nrt, _topology_object(found, question, node_name or Path(machine).name))
    _show(found, report, [*outs, nrt], as_json=as_json)
    has_warning = found.warnings or found.crashes
    return SOME_REFUSED if not found.admitted or (strict and has_warning) else 0


def _simulate(  # noqa: PLR0917  # the question and what else was asked
    question: Question,
    pods: Sequence[DescribedPod],
    actions: Sequence[Action],
    wishes: Wishes,
    variants: Sequence[Variant],
    document: Document | None,
) -> NodeSimulation:
    """Simulates the node and, in the same state, the other configurations.

    Raises:
        documents.DocumentError: a setting is not supported.
    """
    from msgspec.structs import replace

    from numaproof.simulation import comparison, configuration_check
    from numaproof.simulation.admission import CannotAnswerError
    from numaproof.simulation.what_ifs import simulate as run
    from numaproof.workdir.scratch import scratch_folder

    with scratch_folder() as folder, user_files.locate_unsupported(document):
        try:
            found = run(question, pods, folder, actions=actions, wishes=wishes)
        except CannotAnswerError:
            configuration_check.judge(question)  # raises the same error with the field
            raise
        if not variants:
            return found
        (folder / "variants").mkdir()
        results = comparison.compare(variants, pods, folder / "variants")
        return replace(found, comparison=results)


def _check_outputs(
    outs: Sequence[Path],
    nrt: Path | None,
    read: Iterable[user_files.UserFile],
    names: Iterable[str],
) -> None:
    """Checks that the outputs are not inputs, and that the extensions of `outs` are known.

    Raises:
        click.UsageError: an output is an input, or the extension is unknown.
    """
    from numaproof.reports.answers import WRITERS

    for out in outs:
        if out.suffix not in WRITERS:
            kinds = " or ".join(WRITERS)
            raise click.BadParameter(
                f"{out}: unknown file type; expected a name ending with {kinds}",
                param_hint="--out",
            )
    files = [split_node(name)[0] for name in names]
    require_no_input((*outs, nrt), [one.place for one in read], files)


def _answer_fleet(fleet: FleetSimulation, *, as_json: bool) -> int:
    """Prints where the pods fit, and returns the exit code."""
    from numaproof.cli.fleet_view import fleet_parts

    if as_json:
        click.echo(codec.encode(fleet))
    else:
        _print(fleet_parts(fleet))
    return 0 if fleet.admitted else SOME_REFUSED


def _show(
    simulation: NodeSimulation, report: AnswerReport, files: Iterable[Path | None], *, as_json: bool
) -> None:
    """Prints the answer as JSON or text, and the names of files that were written."""
    from numaproof.reports.answers import parts
    from numaproof.reports.console import PLAIN_WIDTH, terminal_width

    if as_json:
        click.echo(codec.encode(simulation))
        return
    _print(parts(report, terminal_width() or PLAIN_WIDTH))
    for file in files:
        if file is not None:
            click.echo(f"\nwrote {file}")


def _topology_object(simulation: NodeSimulation, question: Question, name: str) -> str:
    """Returns the node after the last step as a NodeResourceTopology.

    Raises:
        click.UsageError: the kubelet does not start, or its memory is unknown.
    """
    from numaproof.simulation.node_resource_topology import dump

    last = simulation.steps[-1] if simulation.steps else simulation
    if last.node is None or last.remaining is None:
        raise click.UsageError("--nrt: the kubelet does not start, so there is no node to write")
    if question.unknown_memory:
        message = f"--nrt: the machine's description doesn't show {question.unknown_memory}"
        raise click.UsageError(f"{message}; add --assume memory=SIZE")
    return dump(name, question.machine, last.node, last.remaining)


def _print(parts: Iterable[RenderableType]) -> None:
    """Prints the parts of an answer, with an empty line between them."""
    from numaproof.reports.console import show

    show(islice((one for part in parts for one in ("", part)), 1, None), fold=True)
