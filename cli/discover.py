"""`numaproof discover`: shows what the kubelet would discover on a machine or in a tree."""

from __future__ import annotations

import click

from numaproof.cli.drawings import show_machine
from numaproof.cli.machine_names import named_tree
from numaproof.cli.targets import release_option
from numaproof.protocol import codec


@click.command()
@click.argument("root", type=click.Path(exists=True))
@release_option
@click.option("--json", "as_json", is_flag=True, help="Print cAdvisor's MachineInfo as JSON.")
def discover(root: str, kubernetes: str, *, as_json: bool) -> None:
    """Show what the kubelet would discover in ROOT.

    ROOT is / for this machine, a directory with sys/ and proc/, or such a directory as a .tar,
    .tar.gz, .tar.xz or .tar.bz2.

    \b
    Examples:
      numaproof discover /
      numaproof discover node7.tar.xz --json
    """
    from numaproof import fakesys
    from numaproof.folders.trees import FolderTree
    from numaproof.reference.cadvisor import discovery
    from numaproof.reference.deviations.releases import release

    with fakesys.open_tree(root) as tree, named_tree(root):
        machine = discovery.discover(
            FolderTree.root(tree, root),
            release(kubernetes).no_cpu,
            lambda line: click.echo(line, err=True),
        )
    if as_json:
        click.echo(codec.encode(machine))
    else:
        show_machine(machine)
