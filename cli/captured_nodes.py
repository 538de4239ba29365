"""`--node`: a node's machine, configuration, state and pods from one file."""

from __future__ import annotations

from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource

from numaproof.cli.choice import minor_release
from numaproof.cli.user_files import UserFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numaproof.formats.nodes.contents import Record
    from numaproof.formats.nodes.reading import CapturedNode, SourceFile

F = TypeVar("F", bound="Callable[..., Any]")
Part = Literal["machine", "config", "state", "pods", "release"]
"""What a node has."""

_NAMES: dict[str, str] = {
    "config": "configuration",
    "release": "Kubernetes release",
    "state": "state files",
}
"""How messages call the parts that are not called by their own names."""


NO_PODS = "it has no pods, so this answer is for a node without them"
"""What a command assumes if it takes pods, but a captured node has none."""


class NodeFile(NamedTuple):
    """A captured node: its path, the chosen node if it has several, and its name if given."""

    path: str
    choice: str = ""
    name: str = ""


def captured_node_option(
    necessary: tuple[str, ...] = ("machine",), fleet: str = "", **parameters: str
) -> Callable[[F], F]:
    """Returns the option ``--node``, which fills in other parameters of a command.

    Args:
        necessary: the parameters without which the command can't run.
        fleet: the parameter for several nodes, as a tuple of `NodeFile`, which is empty for a
            single node; the command takes one node if it has no such parameter.
        parameters: the command's parameter for each `Part` that it takes.

    Raises:
        click.UsageError: a required parameter is missing, or the file and an option contradict
            each other.
        DocumentError: the file does not describe a node, or describes several.
    """

    def decorate(command: F) -> F:
        parts = _listing([_NAMES.get(part, part) for part in parameters])
        several = (
            " For several nodes, use NAME=FILE, repeatable, or a directory of such files."
            " A FILE may also be a machine alone."
            if fleet
            else ""
        )

        @click.option(
            "--node",
            "node_files",
            multiple=bool(fleet),
            metavar="[NAME=]FILE" if fleet else "FILE",
            help=f"Take the {parts} from an archive of kubectl numaproof, a"
            " must-gather or a sosreport. FILE#NODE chooses one of several nodes. Other options"
            f" override it.{several}",
        )
        @click.pass_context
        @wraps(command)
        def run(
            ctx: click.Context, /, *, node_files: tuple[str, ...] | str | None, **values: Any
        ) -> Any:
            names = (node_files,) if isinstance(node_files, str) else node_files or ()
            if fleet:
                values[fleet] = _several(names)
                if values[fleet]:
                    return command(**values)

            def hint(part: str) -> str:
                return _parameter(ctx, parameters[part]).get_error_hint(ctx)

            with ExitStack() as stack:
                node = None
                if names:
                    node = stack.enter_context(_open(names[0]))
                    parts = _open_parts(ctx, parameters, node)
                    values_by_part = _parts_of(node, parts)
                    values |= {parameters[part]: value for part, value in values_by_part.items()}
                    release = values.get(parameters.get("release", ""))
                    for line in _lines(node, parts, values_by_part, release, hint):
                        click.echo(line, err=True)
                _require(ctx, necessary, values, node, parameters)
                return command(**values)

        return cast("F", run)

    return decorate


def is_machine(path: str) -> bool:
    """Whether a name is that of a machine alone: a bundled profile, or a file not packed."""
    from numaproof import fakesys

    is_file = Path(path).is_file() and not fakesys.is_archive(path)
    return is_file or (path in fakesys.bundled_profiles() and not Path(path).exists())


def _several(names: Sequence[str]) -> tuple[NodeFile, ...]:
    """Returns the nodes if there are several, or one has a name of its own."""
    found: list[NodeFile] = []
    for text in names:
        name, equals, file = text.partition("=")
        if not equals or Path(text).exists():
            name, file = "", text
        members = () if equals and name else _members(Path(file))
        if members:
            found += (NodeFile(str(path), name=path.name.partition(".")[0]) for path in members)
        else:
            path, choice = (file, "") if name and is_machine(file) else _existing(file)
            found.append(NodeFile(path, choice, name))
    is_single = len(names) == len(found) == 1 and not found[0].name
    return () if is_single else tuple(found)


def _members(folder: Path) -> tuple[Path, ...]:
    """Returns the captured nodes in a directory that isn't one itself, and names all others."""
    from numaproof import fakesys
    from numaproof.formats.nodes import contents

    if not folder.is_dir() or (folder / contents.RECORD).exists():
        return ()
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = tuple(
        path
        for path in inside
        if fakesys.is_archive(path)
        or (path / contents.RECORD).exists()
        or (path.is_dir() and fakesys.is_tree(path))
    )
    others = ", ".join(path.name for path in inside if path not in found)
    if found and others:
        hint = "name a machine alone with --node NAME=FILE"
        click.echo(f"{folder}: left out {others}: not captured nodes ({hint})", err=True)
    return found


def _existing(name: str) -> tuple[str, str]:
    """Splits ``FILE#NODE``.

    Raises:
        click.BadParameter: the file does not exist.
    """
    from numaproof.cli.machine_names import split_node

    file, node = split_node(name)
    if not Path(file).exists():
        raise click.BadParameter(f"{file!r} does not exist; check the path", param_hint="'--node'")
    return file, node


def _open(name: str) -> AbstractContextManager[CapturedNode]:
    from numaproof.formats.nodes.reading import open_node

    return open_node(*_existing(name))


def _parts_of(node: CapturedNode, parts: Sequence[str]) -> dict[str, Any]:
    """Returns the values of the parts that the command takes from the node."""
    offers: dict[str, Any] = {
        "machine": node.machine if node.has_machine else None,
        "config": tuple(map(user_file, node.configuration)),
        "state": node.state and user_file(node.state),
        "pods": node.pods and (user_file(node.pods),),
        "release": node_release(node),
    }
    return {part: offers[part] for part in parts if offers[part]}


def _open_parts(ctx: click.Context, parameters: Mapping[str, str], node: CapturedNode) -> list[str]:
    """Returns the parts that no other option gives.

    Raises:
        click.UsageError: another option gives the machine, but the node has its own, or the command
            takes nothing else.
    """
    parts = [
        part
        for part, name in parameters.items()
        if ctx.get_parameter_source(name) != ParameterSource.COMMANDLINE
    ]
    if "machine" in parts:
        return parts
    hint = _parameter(ctx, parameters["machine"]).get_error_hint(ctx)
    if not set(parts) - {"release"}:
        raise click.UsageError(f"{hint} and '--node' exclude each other; remove one")
    if node.has_tree:
        message = f"{node.file} has its own machine, which {hint} cannot replace; remove {hint}"
        raise click.UsageError(message)
    if node.has_machine:
        click.echo(f"{node.file}: its own description of the machine is not used", err=True)
    return parts


def user_file(source: SourceFile) -> UserFile:
    """Returns a file of a captured node as the commands read files."""
    return UserFile(source.name, path=source.path)


def node_release(node: CapturedNode) -> str | None:
    """Returns the known release nearest to that of the node's kubelet, if it has a version."""
    from numaproof.protocol.releases import RELEASES

    release = minor_release(node.kubernetes)
    if release is None:
        return None
    return min(RELEASES, key=lambda other: abs(_number(other) - _number(release)))


def _number(release: str) -> int:
    major, _, minor = release.partition(".")
    return int(major) * 1000 + int(minor)


def _lines(
    node: CapturedNode,
    parts: Sequence[str],
    values_by_part: Mapping[str, Any],
    release: str | None,
    hint: Callable[[str], str],
) -> Iterator[str]:
    """Yields what the command takes from the node, what is missing, and the release used.

    `hint` returns the option for a part.
    """
    names = [_NAMES.get(part, part) for part in values_by_part if part != "release"]
    version = f" (kubelet {node.kubernetes})" if node.kubernetes else ""
    of = f" of {node.node}{version}" if node.node else ""
    if names:
        yield f"{node.file}: read the {_listing(names)}{of} from {node.format}"
    if "release" in parts:
        yield from unknown_release(node, release)
    if "pods" in set(parts) - values_by_part.keys():
        yield f"{node.file}: {NO_PODS}; add {hint('pods')}"
    if node.record is not None:
        yield from missing_parts(node.file, node.record, parts)


def unknown_release(node: CapturedNode, release: str | None) -> Iterator[str]:
    """Yields that the release of the node's kubelet is unknown, and the release used instead."""
    from numaproof.protocol.releases import RELEASES

    if node.kubernetes and minor_release(node.kubernetes) not in RELEASES:
        known = f"{RELEASES[0]} to {RELEASES[-1]}"
        used = f"; this answer is for {release}" if release else ""
        yield (
            f"{node.file}: kubelet {node.kubernetes} is not among the known releases, {known}{used}"
        )


_FILES = {
    "machine": "tree",
    "config": "configz.json",
    "state": "state",
    "pods": "pods.json",
}
"""The file or folder of an archive that has most of a part."""


def missing_parts(file: str, record: Record, parts: Sequence[str]) -> Iterator[str]:
    """Yields what an archive lacks of some parts, and how to get it."""
    for failure in record.failures:
        fix = f" ({failure.fix})" if failure.fix else ""
        yield f"{file}: missing {failure.part}: {failure.message}{fix}"
    wanted = {_FILES[part] for part in parts if part in _FILES}
    there = {*record.parts, *(failure.part for failure in record.failures)}
    if missing := sorted(wanted - there):
        yield f"{file}: missing {_listing(missing)}: run `kubectl numaproof {record.node} --debug`"


def _listing(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _require(
    ctx: click.Context,
    necessary: tuple[str, ...],
    values: Mapping[str, Any],
    node: CapturedNode | None,
    parameters: Mapping[str, str],
) -> None:
    """Checks that the parameters without which the command can't run have values.

    Raises:
        click.UsageError: one has none.
    """
    for name in necessary:
        if values[name]:
            continue
        param = _parameter(ctx, name)
        if node is None:
            raise click.MissingParameter(ctx=ctx, param=param)
        part = next(part for part, parameter in parameters.items() if parameter == name)
        message = f"{node.file} has no {_NAMES.get(part, part)}"
        if part == "config":
            message = node.without_configuration
        raise click.UsageError(f"{message}; add {param.get_error_hint(ctx)}")


def _parameter(ctx: click.Context, name: str) -> click.Parameter:
    return next(param for param in ctx.command.params if param.name == name)
