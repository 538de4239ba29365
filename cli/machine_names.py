"""Resolves the machines that users name: bundled profiles, globs, profile files and trees."""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof import fakesys
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.protocol.machine import MachineInfo


F = TypeVar("F", bound="Callable[..., Any]")


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from numaproof import fixtures

    return [name for name in fixtures.machine_files() if name.startswith(incomplete)]


MACHINE: dict[str, Any] = {"metavar": "NAME|FILE", "shell_complete": _complete}
"""Settings shared by options and arguments that name a machine for `load_machine`."""

node_machine_option = click.option(
    "--machine",
    metavar="NAME|FILE|TREE",
    shell_complete=_complete,
    required=True,
    help="Bundled profile, profile file or tree (/ for this machine, a directory or a tar file).",
)
profile_option = click.option(
    "--machine", **MACHINE, required=True, help="Bundled profile, profile file or tree."
)
node_devices_option = click.option(
    "--devices",
    multiple=True,
    metavar="NAME=COUNT@NODES,...|FILE",
    help="Devices of the node, such as vendor.example/nic=4@0 for four NICs near NUMA node 0."
    " Repeatable.",
)


def machines_option(
    help: str = "Use only this machine: a bundled profile, a glob or a profile file. Repeatable.",  # noqa: A002
) -> Callable[[F], F]:
    """Returns the option that limits a command to some machines."""
    return click.option("--machine", "machine_names", **MACHINE, multiple=True, help=help)


def load_machine(name: str) -> fakesys.Profile:
    """Loads a bundled profile by name, or a profile file.

    Raises:
        click.UsageError: no bundled profile or file has this name.
        fakesys.DocumentError: the file is not a profile.
    """
    from numaproof import fakesys

    if name in fakesys.bundled_profiles():
        return fakesys.load_profile(name)
    if not Path(name).exists():
        close = get_close_matches(name, fakesys.bundled_profiles(), n=1)
        hint = f"did you mean {close[0]}?" if close else "see `numaproof profile list`"
        raise click.UsageError(f"machine {name!r}: neither a bundled profile nor a file; {hint}")
    return fakesys.load_profile(Path(name))


def discover_machine(name: str, kubernetes: str) -> MachineInfo:
    """Discovers a machine as a kubelet of the release would.

    Args:
        name: a name for `load_machine`, or a tree: ``/``, a directory with ``sys`` and ``proc``,
            or a tar file of such a directory.
        kubernetes: the release.

    Raises:
        click.UsageError: no bundled profile, file or tree has this name.
        fakesys.DocumentError: the file is not a profile.
        fakesys.TreeError: the tree cannot be read.
        DiscoveryError: the tree does not describe a machine.
    """
    from numaproof import fakesys
    from numaproof.reference.cadvisor.discovery import discover
    from numaproof.reference.deviations.releases import release
    from numaproof.workdir.trees import FolderTree

    is_tree = Path(name).is_dir() or ".tar" in Path(name).suffixes[-2:]
    if is_tree and name not in fakesys.bundled_profiles():
        with fakesys.open_tree(name) as root, locate_discovery_error(name):
            return discover(FolderTree.root(root, name), release(kubernetes).no_cpu)
    tree = fakesys.TreePath.root(fakesys.build_tree(load_machine(name)))
    with locate_discovery_error(name):
        return discover(tree, release(kubernetes).no_cpu)


@contextmanager
def locate_discovery_error(name: str) -> Iterator[None]:
    """Adds the machine's name to a `DiscoveryError` raised in the block.

    Raises:
        DiscoveryError: discovery failed.
    """
    from numaproof.reference.cadvisor.discovery import DiscoveryError

    try:
        yield
    except DiscoveryError as error:
        raise DiscoveryError(
            f"{name}: {error}; a tree must contain the folders sys and proc"
        ) from None


def named_machines(names: Iterable[str], folder: Path) -> list[ProfileMachine]:
    """Resolves names and globs to machines whose trees are written to `folder`.

    Without names, returns all bundled machines.

    Raises:
        click.UsageError: a name matches nothing.
    """
    from numaproof import fakesys
    from numaproof.conformance.execution.machines import ProfileMachine

    machines: dict[str, ProfileMachine] = {}
    for name in names or ("*",):
        matching = [one for one in fakesys.bundled_profiles() if fnmatchcase(one, name)]
        for one in matching or (name,):
            profile = load_machine(one)
            machines[profile.name] = ProfileMachine(profile, folder, requested_name=one)
    return list(machines.values())
