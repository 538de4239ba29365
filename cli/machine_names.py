"""Resolves the machines that users name: bundled profiles, globs, profile files and trees."""

from __future__ import annotations

from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numaproof import fakesys
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.formats.machines.description import MachineText


F = TypeVar("F", bound="Callable[..., Any]")


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from numaproof import fixtures

    return [name for name in fixtures.machine_files() if name.startswith(incomplete)]


MACHINE: dict[str, Any] = {"metavar": "NAME|FILE", "shell_complete": _complete}
"""Settings shared by options and arguments that name a machine for `load_machine`."""


class AssumptionParam(click.ParamType[tuple[str, int]]):
    """``KEY=VALUE`` for ``--assume``; ``NODE:KEY=VALUE`` is about one of several nodes."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Returns the key and the value."""
        from numaproof.formats.machines import assumptions

        if isinstance(value, tuple):
            return value
        node, colon, pair = str(value).rpartition(":")
        try:
            key, number = assumptions.parse(pair)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return f"{node}{colon}{key}", number


assume_option = click.option(
    "--assume",
    type=AssumptionParam(),
    metavar="KEY=VALUE",
    multiple=True,
    help="What to assume where a machine's description says nothing, such as memory=64Gi or"
    " threads-per-core=2. NODE:KEY=VALUE is about one of several nodes. Repeatable.",
)


def node_machine_option(command: F) -> F:
    """Adds the options for the machine of a node: ``--machine`` and ``--assume``."""
    machine = click.option(
        "--machine",
        metavar="NAME|FILE|TREE",
        shell_complete=_complete,
        help="Bundled profile, profile file, tree (/ for this machine, a directory or a tar file),"
        " or a description such as the output of lscpu. Required without --node.",
    )
    return machine(assume_option(command))


node_devices_option = click.option(
    "--devices",
    multiple=True,
    metavar="NAME=COUNT@NODES,...|FILE",
    help="Devices of the node, such as vendor.example/nic=4@0 for four NICs near NUMA node 0."
    " NODE:NAME=COUNT are those of one of several nodes. Repeatable.",
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
    from numaproof.inputs.names import closest

    if name in fakesys.bundled_profiles():
        return fakesys.load_profile(name)
    if not Path(name).exists():
        close = closest(name, fakesys.bundled_profiles())
        hint = f"did you mean {close}?" if close else "see `numaproof profile list`"
        raise click.UsageError(f"machine {name!r}: neither a bundled profile nor a file; {hint}")
    _refuse_other_than_profile(name)
    return fakesys.load_profile(Path(name))


def _refuse_other_than_profile(name: str) -> None:
    """Refuses descriptions of machines, and trees, where a profile is needed.

    Raises:
        fakesys.DocumentError: the file is such a description, or one that can't be used.
        click.UsageError: the file is a tree.
    """
    from numaproof import fakesys
    from numaproof.formats.machines.reading import read
    from numaproof.inputs import door

    if Path(name).is_dir() or fakesys.is_archive(name):
        raise click.UsageError(
            f"machine {name!r}: expected a profile, not a tree; create one with"
            f" `numaproof profile capture {name} --out machine.yaml`"
        )
    found = read(door.read(name), name)
    if found is not None:
        raise click.UsageError(
            f"machine {name!r}: {found.format} doesn't show all that this command needs; run"
            " `numaproof profile capture / --out machine.yaml` on the machine"
        )


def read_machine(
    name: str,
    kubernetes: str,
    assume: Sequence[tuple[str, int]] = (),
    log: Callable[[str], None] | None = None,
    *,
    by_siblings: bool = False,
) -> MachineText:
    """Reads a machine as a kubelet of the release would discover it.

    Args:
        name: a name for `load_machine`; a tree: ``/``, a directory with ``sys`` and ``proc``, or a
            tar file of such a directory; or a file that `numaproof.formats.machines` can read.
            ``FILE#NODE`` chooses a node of a must-gather.
        kubernetes: the release.
        assume: what to assume where a description says nothing.
        log: a function to call with what a kubelet would log about a tree. Without it, a damaged
            tree is an error.
        by_siblings: whether cores of trees are the thread siblings that the kernel lists, which
            the kubelet ignores.

    Raises:
        click.UsageError: no bundled profile, file or tree has this name, or an assumption has no
            effect.
        fakesys.DocumentError: the file describes no machine.
        fakesys.TreeError: the tree cannot be read, or is damaged.
        DiscoveryError: the tree does not describe a machine.
    """
    from numaproof import fakesys
    from numaproof.formats.machines.description import MachineText
    from numaproof.formats.machines.reading import read
    from numaproof.formats.machines.reports import read_report
    from numaproof.inputs import door
    from numaproof.reference.cadvisor.discovery import discover
    from numaproof.reference.deviations.releases import release
    from numaproof.workdir.trees import FolderTree

    no_cpu = release(kubernetes).no_cpu
    name, node = split_node(name)
    is_bundled = name in fakesys.bundled_profiles()
    if not is_bundled and Path(name).is_file() and not fakesys.is_archive(name):
        found = read(door.read(name), name, assume, no_cpu)
        if found is not None:
            return found
    if not is_bundled and (Path(name).is_dir() or fakesys.is_archive(name)):
        if node or not fakesys.is_tree(name):
            report = read_report(
                name,
                lambda text, file, own: read(text, file, assume, no_cpu, own),
                no_cpu,
                node,
            )
            if report is not None:
                if not report.format:
                    _refuse_assumptions(assume, name)
                return report
        with fakesys.open_tree(name) as root, locate_discovery_error(name):
            tree = FolderTree.root(root, name)
            if log is None:
                fakesys.require_intact(tree)
            machine = discover(tree, no_cpu, log, by_siblings=by_siblings)
        _refuse_assumptions(assume, name)
        return MachineText(file=name, machine=machine)
    _refuse_assumptions(assume, name)
    profile = load_machine(name)
    generated = fakesys.TreePath.root(fakesys.build_tree(profile))
    with locate_discovery_error(name):
        return MachineText(
            file=name,
            title=f"{profile.name}: {profile.title}",
            machine=discover(generated, no_cpu, log, by_siblings=by_siblings),
        )


def split_node(name: str) -> tuple[str, str]:
    """Splits ``FILE#NODE`` into the file and the name of a node, which can be empty."""
    if "#" in name and not Path(name).exists():
        file, _, node = name.rpartition("#")
        return file, node
    return name, ""


def _refuse_assumptions(assume: Sequence[tuple[str, int]], name: str) -> None:
    if assume:
        raise click.UsageError(
            f"--assume {assume[0][0]} has no effect: {name} describes the machine completely"
        )


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
