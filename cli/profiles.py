"""`numaproof profile`: bundled machine profiles, and a user's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli.commands import SentenceGroup
from numaproof.cli.drawings import show_machine
from numaproof.cli.machine_names import MACHINE, load_machine, named_tree
from numaproof.cli.outputs import OUTPUT_FILE, OUTPUT_PATH, require_new
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof import fakesys
    from numaproof.protocol.machine import MachineInfo


_OTHER_ARCHIVES = frozenset({".zip", ".tgz", ".txz", ".tbz2", ".7z", ".cpio"})


@click.group(cls=SentenceGroup)
def profile() -> None:
    """List, show, validate and capture machine profiles, and write their trees.

    \b
    Example:
      numaproof profile list
    """


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_profiles(*, as_json: bool) -> None:
    """List the bundled machines.

    \b
    Example:
      numaproof profile list
    """
    from numaproof import fakesys

    rows = [(one.name, one.title) for one in map(fakesys.load_profile, fakesys.bundled_profiles())]
    if as_json:
        click.echo(codec.encode([{"name": name, "title": title} for name, title in rows]))
        return
    width = max(len(name) for name, _ in rows)
    for name, title in rows:
        click.echo(f"{name:<{width}}  {title}")


@profile.command("show")
@click.argument("name", type=MACHINE)
def show_profile(name: str) -> None:
    """Draw a bundled machine or the machine of a profile file.

    \b
    Example:
      numaproof profile show dgx-spark-gb10
    """
    chosen = load_machine(name)
    click.echo(f"{chosen.name}: {chosen.title}")
    with named_tree(name):
        machine = _discovered(chosen)
    show_machine(machine)


@profile.command("tree")
@click.argument("name", type=MACHINE)
@click.option(
    "--to",
    type=OUTPUT_PATH,
    required=True,
    metavar="DIR|FILE.tar",
    help="New directory, or a .tar, .tar.gz or .tar.xz file to write.",
)
def write_tree(name: str, to: Path) -> None:
    """Write the /sys and /proc tree of a machine.

    \b
    Example:
      numaproof profile tree dgx-spark-gb10 --to gb10.tar.xz
    """
    from numaproof import fakesys

    tree = fakesys.build_tree(load_machine(name))
    if not to.parent.is_dir():
        raise click.UsageError(f"{to.parent} is not a folder; create it first")
    if to.suffix in _OTHER_ARCHIVES:
        raise click.UsageError(
            f"{to}: unknown archive type; use .tar, .tar.gz, .tar.xz or a directory"
        )
    if ".tar" in to.suffixes[-2:]:
        fakesys.write_tar(tree, to)
    else:
        fakesys.write_directory(tree, to)
    click.echo(f"wrote {to}")


@profile.command("validate")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def validate(files: Sequence[Path]) -> None:
    """Check that profile files are well-formed and describe machines that can be discovered.

    \b
    Example:
      numaproof profile validate my-machine.yaml
    """
    from numaproof import fakesys
    from numaproof.reference.cadvisor.discovery import DiscoveryError

    wrong = 0
    for file in files:
        try:
            chosen = fakesys.load_profile(file)
            machine = _discovered(chosen)
        except (fakesys.DocumentError, fakesys.ProfileError, DiscoveryError) as error:
            wrong += 1
            click.echo(str(error), err=True)
        else:
            click.echo(f"{file}: {chosen.name} is valid, with {plural(machine.num_cores, 'CPU')}")
    if wrong:
        raise click.ClickException(f"{wrong} of {plural(len(files), 'file')} not valid")


@profile.command("capture")
@click.argument("source", type=click.Path(exists=True), metavar="ROOT|FILE.tar.*")
@click.option(
    "--name", help="Name of the profile (default: the name of the file written, or of the source)."
)
@click.option(
    "--to",
    type=OUTPUT_FILE,
    help="File to write (default: standard output).",
)
def capture(source: str, name: str | None, to: Path | None) -> None:
    """Make a profile of a live machine (/) or of a tree.

    The profile is compact; the command checks that it gives the same discovery as the source.

    \b
    Example:
      numaproof profile capture / --to build-server.yaml
    """
    from numaproof import fakesys
    from numaproof.folders.output_files import write_file
    from numaproof.folders.trees import FolderTree
    from numaproof.reference.cadvisor.discovery import discover

    if to is not None:
        require_new(to)
    with fakesys.open_tree(source) as folder, named_tree(source):
        root = FolderTree.root(folder, source)
        made = fakesys.capture(root, name or _name_for(to or Path(source).resolve()))
        if _discovered(made) != discover(FolderTree.root(folder, source)):
            raise click.ClickException(
                f"no profile describes {source} so that discovery gives the same result"
            )
    text = fakesys.dump_profile(made)
    if to is None:
        click.echo(text.encode(), nl=False)  # YAML is UTF-8, whatever the terminal is
    else:
        write_file(to, text, new=True)
        click.echo(f"wrote {to}")


def _name_for(path: Path) -> str:
    """A profile's name made of a file's; a live machine is just that."""
    stem = path.name.lower().partition(".tar")[0].removesuffix(".yaml")
    return re.sub(r"[^a-z0-9._+-]+", "-", stem).strip("-.") or "this-machine"


def _discovered(chosen: fakesys.Profile) -> MachineInfo:
    from numaproof import fakesys
    from numaproof.reference.cadvisor.discovery import discover

    return discover(fakesys.TreePath.root(fakesys.build_tree(chosen)))
