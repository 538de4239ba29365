"""`numaproof simulate`: shows which pods a node would admit, what they would get, and why."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from numaproof.cli import user_files
from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.choice import IntRange
from numaproof.cli.fleet_nodes import FleetOptions, read_fleet
from numaproof.cli.machine_names import node_devices_option, node_machine_option, read_machine
from numaproof.cli.ordered_options import ALL, OrderedCommand
from numaproof.cli.outputs import OUTPUT_FILE
from numaproof.cli.targets import own_baseline_option, release_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from numaproof.cli.captured_nodes import NodeFile
    from numaproof.reports.answers import AnswerReport

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
@click.option(
    "--replicas",
    type=IntRange(min=0),
    help="Number of pods of each workload on this node (default: all replicas).",
)
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
    metavar="FIELD=VALUE,...|FILE",
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
    type=OUTPUT_FILE,
    metavar="FILE.html|FILE.svg",
    help="Also write the answer as a web page or a drawing.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also exit with 1 if a known defect of the kubelet affects an answer.",
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
    out: Path | None,
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
        own_release = _is_given("kubernetes")
        options = FleetOptions(
            configs=configs,
            devices=devices,
            kubernetes=kubernetes if own_release else "",
            newest=kubernetes,
            assume=assume,
            follows_docs=baseline == "documented",
            lenient=lenient,
        )
        return _simulate_fleet(
            nodes, files, options, replicas=replicas, node_name=node_name, as_json=as_json
        )
    from msgspec.structs import replace

    from numaproof.cli.node_files import read_state, read_variants, what_ifs, wishes_of
    from numaproof.cli.simulate_view import answer
    from numaproof.reports.answers import WRITERS
    from numaproof.reports.untrusted_text import visible
    from numaproof.simulation import comparison, configuration_check
    from numaproof.simulation import devices as given_devices
    from numaproof.simulation.admission import CannotAnswerError, Question
    from numaproof.simulation.what_ifs import simulate as run
    from numaproof.workdir.output_files import write_file
    from numaproof.workdir.scratch import scratch_folder

    if out is not None and out.suffix not in WRITERS:
        kinds = " or ".join(WRITERS)
        raise click.BadParameter(
            f"{out}: unknown file type; expected a name ending with {kinds}", param_hint="--out"
        )
    user_files.check_read_once((*configs, *files, *on_node, *later))
    settings, asked = user_files.read_node(
        configs, files, (kubernetes,), lenient=lenient, replicas=replicas, node_name=node_name
    )
    assert settings is not None
    for note in asked.notes:
        click.echo(note, err=True)
    if files or not (state or on_node or remove or restart or later):
        user_files.require_pods(asked, files)
    described = user_files.machine_for(settings.settings, read_machine(machine, kubernetes, assume))
    node = read_state(state, on_node, kubernetes, lenient=lenient, node_name=node_name)
    plugins, unsure = given_devices.as_recorded(
        given_devices.read(devices, described.machine), node.devices
    )
    actions = what_ifs(
        click.get_current_context(), remove, later, kubernetes, lenient=lenient, replicas=replicas
    )
    for note in (*node.notes, *unsure):
        click.echo(note, err=True)
    question = Question(
        described.machine,
        settings.settings,
        kubernetes,
        baseline == "documented",
        plugins,
        flags=settings.flags,
        state=node.state,
    )
    tried = read_variants(compare, question, lenient=lenient)
    wishes = wishes_of(explain, question, asked.pods, actions)
    with scratch_folder() as folder, user_files.locate_unsupported(settings.document):
        try:
            found = run(
                question,
                asked.pods,
                folder,
                actions=actions,
                wishes=wishes,
            )
        except CannotAnswerError:
            configuration_check.judge(question)  # raises the same error with the field
            raise
        if tried:
            (folder / "variants").mkdir()
            results = comparison.compare(tried, asked.pods, folder / "variants")
            found = replace(found, comparison=results)
    notes = (*described.lines, *settings.notes, *asked.notes, *node.notes, *unsure)
    found = replace(found, notes=notes)
    told = answer(found, question, machine, wishes.explain_pods)
    if out is not None:
        write_file(out, visible(WRITERS[out.suffix](told)))
    if as_json:
        click.echo(codec.encode(found))
    else:
        _show(told)
        if out is not None:
            click.echo(f"\nwrote {out}")
    return SOME_REFUSED if not found.admitted or (strict and found.warnings) else 0


def _is_given(parameter: str) -> bool:
    """Whether the command line sets a parameter."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source == ParameterSource.COMMANDLINE


_SINGLE = (
    *("machine", "state", "on_node", "remove", "restart", "later", "compare", "explain", "out"),
    *("nrt", "strict"),
)
"""The options that are about a single node."""


def _simulate_fleet(
    nodes: Sequence[NodeFile],
    files: Sequence[user_files.UserFile],
    options: FleetOptions,
    *,
    replicas: int | None,
    node_name: str,
    as_json: bool,
) -> int:
    """Shows which of several nodes admit the pods.

    Raises:
        click.UsageError: an option is about a single node.
    """
    from msgspec.structs import replace

    from numaproof.cli.fleet_view import fleet_parts
    from numaproof.simulation.fleet import simulate_fleet
    from numaproof.workdir.scratch import scratch_folder

    context = click.get_current_context()
    for param in context.command.params:
        if param.name in _SINGLE and _is_given(param.name):
            raise click.UsageError(f"{param.opts[0]} needs a single --node")
    user_files.check_read_once((*options.configs, *files))
    fleet, notes = read_fleet(nodes, options)
    releases = tuple(dict.fromkeys(one.question.kubernetes for one in fleet))
    _, asked = user_files.read_node(
        (), files, releases, lenient=options.lenient, replicas=replicas, node_name=node_name
    )
    for note in (*notes, *asked.notes):
        click.echo(note, err=True)
    user_files.require_pods(asked, files)
    with scratch_folder() as folder:
        found = simulate_fleet(fleet, asked.pods, folder)
    found = replace(found, notes=(*notes, *asked.notes))
    if as_json:
        click.echo(codec.encode(found))
    else:
        _print(fleet_parts(found))
    return 0 if found.admitted else SOME_REFUSED


def _show(report: AnswerReport) -> None:
    from numaproof.reports.answers import parts
    from numaproof.reports.console import PLAIN_WIDTH, terminal_width

    _print(parts(report, terminal_width() or PLAIN_WIDTH))


def _print(parts: Iterable[RenderableType]) -> None:
    """Prints the parts of an answer, with an empty line between them."""
    from numaproof.reports.console import show

    show(islice((one for part in parts for one in ("", part)), 1, None), fold=True)
