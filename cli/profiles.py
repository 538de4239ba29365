"""`numaproof profile` and `numaproof discover`: machine profiles and what discovery finds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.commands import SentenceGroup
from numaproof.cli.machine_names import (
    MACHINE,
    assume_option,
    load_machine,
    locate_discovery_error,
    read_machine,
)
from numaproof.cli.outputs import OUTPUT_FILE, OUTPUT_PATH, require_new
from numaproof.cli.targets import release_option
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from numaproof import fakesys
    from numaproof.protocol.machine import HugePages, MachineInfo
    from numaproof.reports.json_output import ProfileRow
    from numaproof.reports.layout import CacheGroup


_MIB = 1 << 20


def show_machine(machine: MachineInfo, caches: Sequence[CacheGroup] = ()) -> None:
    """Prints totals, a table of NUMA nodes and a drawing of the machine with these caches."""
    from numaproof.reports.console import PLAIN_WIDTH, show, terminal_width
    from numaproof.reports.drawing_text import drawn_text

    cores = sum(len(node.cores or ()) for node in machine.topology or ())
    cores = cores or machine.num_physical_cores
    counted = f"{plural(cores, 'core')}"
    if cores != machine.num_physical_cores:
        counted += f" ({machine.num_physical_cores} as counted by cAdvisor)"
    click.echo(
        f"{plural(machine.num_cores, 'CPU')}, {counted}, "
        f"{plural(machine.num_sockets, 'socket')}; "
        f"{machine.memory_capacity // _MIB} MiB of memory\n"
    )
    live = terminal_width()
    drawing = drawn_text(machine, caches=caches, width=live or PLAIN_WIDTH)
    nodes = _nodes_table(machine)
    show([nodes, drawing] if live else ["", nodes, "", "", drawing], fold=True)


def _nodes_table(machine: MachineInfo) -> Table:
    from rich import box
    from rich.table import Table

    from numaproof.conformance.cases.machine_properties import Facts

    facts = Facts(machine)
    heads = ("node", "CPUs", "cores", "memory MiB", "huge pages", "distances")
    table = Table(*heads, box=box.SIMPLE)
    for node in sorted(machine.topology or (), key=lambda node: node.node_id):
        table.add_row(
            str(node.node_id),
            str(facts.nodes[node.node_id]) or "none",
            str(len(node.cores or ())),
            str(node.memory // _MIB),
            _huge_pages(node.hugepages or ()),
            _distances(node.distances or ()),
        )
    return table


def _huge_pages(pools: Sequence[HugePages]) -> str:
    """Formats the huge pages of a node, such as ``512 x 2 MiB``."""
    from numaproof.inputs.sizes import size

    pools = [one for one in pools if one.num_pages]
    sizes = (f"{one.num_pages} x {size(one.page_size * 1024)}" for one in pools)
    return ", ".join(sizes) or "none"


_MAX_DISTANCES = 64
"""Maximum number of distances listed for a node; nobody reads a 1,024 by 1,024 table."""


def _distances(distances: Sequence[int]) -> str:
    """Formats the distances in order or, if there are too many, the count of each value."""
    if len(distances) <= _MAX_DISTANCES:
        return " ".join(map(str, distances))
    return ", ".join(f"{count}x{value}" for value, count in sorted(Counter(distances).items()))


_OTHER_ARCHIVES = frozenset({".zip", ".tgz", ".txz", ".tbz2", ".7z", ".cpio"})


@click.group(cls=SentenceGroup)
def profile() -> None:
    """List, show, capture and validate machine profiles.

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
        listed: list[ProfileRow] = [{"name": name, "title": title} for name, title in rows]
        click.echo(codec.encode(listed))
        return
    width = max(len(name) for name, _ in rows)
    for name, title in rows:
        click.echo(f"{name:<{width}}  {title}")


@profile.command("show")
@click.argument("name", metavar="NAME|FILE|TREE", shell_complete=MACHINE["shell_complete"])
@assume_option
@click.option("--l2", is_flag=True, help="Also show which cores share a level 2 cache.")
@click.option(
    "--out", type=OUTPUT_FILE, metavar="FILE.svg", help="Also write the drawing to a file."
)
def show_profile(
    name: str, assume: tuple[tuple[str, int], ...], out: Path | None, *, l2: bool
) -> None:
    """Draw a bundled machine, or the one that a profile file, a tree or a description shows.

    \b
    Examples:
      numaproof profile show dgx-spark-gb10 --out gb10.svg
      numaproof profile show core-i7-1370p --l2
      numaproof profile show lscpu.txt --assume memory=64Gi
    """
    if out is not None and out.suffix != ".svg":
        raise click.BadParameter(f"{out}: expected a name ending with .svg", param_hint="--out")
    found = read_machine(name, NEWEST, assume, by_siblings=True)
    if l2 and found.format:
        raise click.UsageError(f"--l2: {found.format} doesn't show level 2 caches; use a tree")
    caches = _l2_caches(name) if l2 else ()
    if found.title:
        click.echo(found.title)
    for line in found.lines:
        click.echo(line, err=True)
    show_machine(found.machine, caches)
    joined = _cores(read_machine(name, NEWEST, assume).machine)
    if joined != _cores(found.machine):
        click.echo(
            f"\nThe kubelet finds {plural(len(joined), 'core')}, because it takes CPUs with equal "
            "core ids for threads of one core (cores-with-equal-ids-joined)"
        )
    if out is not None:
        from numaproof.reports.drawing_svg import draw_svg, drawing_file
        from numaproof.workdir.output_files import write_file

        drawing = draw_svg(found.machine, caches=caches, title=found.title or Path(name).name)
        write_file(out, drawing_file(drawing))
        click.echo(f"\nwrote {out}")


def _cores(machine: MachineInfo) -> set[tuple[int, ...] | None]:
    return {core.thread_ids for node in machine.topology or () for core in node.cores or ()}


def _l2_caches(name: str) -> Sequence[CacheGroup]:
    from numaproof.cli.l2_caches import l2_caches

    return l2_caches(name)


@profile.command("tree")
@click.argument("name", **MACHINE)
@click.option(
    "--out",
    type=OUTPUT_PATH,
    required=True,
    metavar="DIR|FILE.tar",
    help="Directory to create, or a .tar, .tar.gz or .tar.xz file to write.",
)
def write_tree(name: str, out: Path) -> None:
    """Write the /sys and /proc tree of a machine.

    \b
    Example:
      numaproof profile tree dgx-spark-gb10 --out gb10.tar.xz
    """
    from numaproof import fakesys

    tree = fakesys.build_tree(load_machine(name))
    if out.suffix in _OTHER_ARCHIVES:
        raise click.UsageError(
            f"{out}: unknown archive type; expected .tar, .tar.gz, .tar.xz or a directory"
        )
    if ".tar" in out.suffixes[-2:]:
        fakesys.write_tar(tree, out)
    else:
        fakesys.write_directory(tree, out)
    click.echo(f"wrote {out}")


@profile.command("validate")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def validate(files: Sequence[Path]) -> None:
    """Check that profile files are valid and describe machines that the kubelet can discover.

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
            machine = _discover_profile(chosen)
        except (fakesys.DocumentError, fakesys.ProfileError, DiscoveryError) as error:
            wrong += 1
            click.echo(str(error), err=True)
        else:
            click.echo(f"{file}: {chosen.name} is valid, with {plural(machine.num_cores, 'CPU')}")
    if wrong:
        raise click.ClickException(f"{wrong} of {plural(len(files), 'file')} invalid")


@profile.command("capture")
@click.argument("source", type=click.Path(exists=True), metavar="ROOT|FILE.tar.*")
@click.option(
    "--name", help="Name of the profile (default: the name of the output file or the source)."
)
@click.option(
    "--out",
    type=OUTPUT_FILE,
    help="File to write (default: standard output).",
)
def capture(source: str, name: str | None, out: Path | None) -> None:
    """Capture a profile of this machine (/) or of a tree.

    The command checks that discovery yields the same result for the profile as for the source.

    \b
    Example:
      numaproof profile capture / --out build-server.yaml
    """
    from numaproof import fakesys
    from numaproof.reference.cadvisor.discovery import discover
    from numaproof.workdir.output_files import write_file
    from numaproof.workdir.trees import FolderTree

    if out is not None:
        require_new(out)
    with fakesys.open_tree(source) as folder, locate_discovery_error(source):
        root = FolderTree.root(folder, source)
        fakesys.require_intact(root)
        made = fakesys.capture(root, name or _name_for(out or Path(source).resolve()))
        if any(
            _discover_profile(made, by_siblings=by_siblings)
            != discover(root, by_siblings=by_siblings)
            for by_siblings in (False, True)
        ):
            raise click.ClickException(
                f"{source}: a profile cannot describe this machine exactly; pack its /sys and /proc"
                " into a tar file instead"
            )
    text = fakesys.dump_profile(made)
    if out is None:
        click.echo(text.encode(), nl=False)  # YAML is UTF-8, even if the terminal is not
    else:
        write_file(out, text, new=True)
        click.echo(f"wrote {out}")


def _name_for(path: Path) -> str:
    stem = path.name.lower().partition(".tar")[0].removesuffix(".yaml")
    return re.sub(r"[^a-z0-9._+-]+", "-", stem).strip("-.") or "this-machine"


def _discover_profile(
    machine_profile: fakesys.Profile, *, by_siblings: bool = False
) -> MachineInfo:
    from numaproof import fakesys
    from numaproof.reference.cadvisor.discovery import discover

    tree = fakesys.build_tree(machine_profile)
    return discover(fakesys.TreePath.root(tree), by_siblings=by_siblings)


@click.command()
@captured_node_option(necessary=("root",), machine="root", release="kubernetes")
@click.argument("root", type=click.Path(exists=True), metavar="ROOT", required=False)
@assume_option
@release_option
@click.option("--json", "as_json", is_flag=True, help="Print cAdvisor's MachineInfo as JSON.")
def discover(
    root: str, assume: tuple[tuple[str, int], ...], kubernetes: str, *, as_json: bool
) -> None:
    """Show what the kubelet discovers on a machine.

    ROOT is / for this machine, a directory with sys/ and proc/, a .tar, .tar.gz, .tar.xz or
    .tar.bz2 archive of such a directory, or a description such as the output of lscpu.

    \b
    Examples:
      numaproof discover /
      numaproof discover node7.tar.xz --json
    """
    from numaproof.reports.json_output import DiscoveredMachine

    found = read_machine(root, kubernetes, assume, lambda line: click.echo(line, err=True))
    for line in found.lines:
        click.echo(line, err=True)
    if as_json:
        fields = msgspec.structs.asdict(found.machine)
        click.echo(codec.encode(DiscoveredMachine(**fields, notes=found.lines or msgspec.UNSET)))
    else:
        show_machine(found.machine)
