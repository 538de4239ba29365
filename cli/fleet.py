"""`numaproof simulate` with several nodes: which pods fit where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from numaproof.cli import user_files
from numaproof.cli.fleet_nodes import read_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.cli.captured_nodes import NodeFile
    from numaproof.cli.fleet_nodes import FleetOptions
    from numaproof.simulation.fleet import FleetSimulation

_SINGLE = (
    *("machine", "state", "on_node", "remove", "restart", "later", "compare", "explain", "outs"),
    *("nrt", "strict"),
)
"""The parameters that are about a single node."""


def read_and_simulate(
    nodes: Sequence[NodeFile],
    files: Sequence[user_files.UserFile],
    options: FleetOptions,
    *,
    replicas: int | None,
    node_name: str,
) -> FleetSimulation:
    """Reads nodes and pods, and finds where the pods fit.

    Raises:
        click.UsageError: an option is about a single node, or there are no pods.
        DocumentError: a file is invalid.
    """
    from msgspec.structs import replace

    from numaproof.simulation.fleet import simulate_fleet
    from numaproof.workdir.scratch import scratch_folder

    for param in click.get_current_context().command.params:
        if param.name in _SINGLE and is_given(param.name):
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
    return replace(found, notes=(*notes, *asked.notes))


def is_given(parameter: str) -> bool:
    """Whether the command line sets a parameter."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source == ParameterSource.COMMANDLINE
