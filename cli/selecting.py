"""The options that select cases, shared by the commands that play or list cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.conformance.selection.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from click.shell_completion import CompletionItem

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.selection.patterns import Selection

F = TypeVar("F", bound=Callable[..., Any])


def all_cases(own: Sequence[Path]) -> tuple[Case, ...]:
    """Returns the bundled cases and those of a user's files and folders.

    Raises:
        documents.DocumentError: a file is wrong; see `loading.with_own`.
    """
    from numaproof.conformance.cases import loading
    from numaproof.conformance.requirements import load_registry

    known = load_registry().by_id() if own else ()
    return loading.with_own(loading.bundled_cases(), own, known)


def _items(rows: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value, help=about or None) for value, about in rows]


def _descriptions(rows: Iterable[Any]) -> list[tuple[str, str]]:
    return [(row.id, row.about) for row in rows]


def complete_case(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the ids of bundled cases."""
    from numaproof.conformance.selection import listing

    return _items(_descriptions(listing.cases(incomplete)))


def complete_requirement(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the ids of requirements."""
    from numaproof.conformance.selection import listing

    return _items(_descriptions(listing.requirements(incomplete.upper())))


def complete_pattern(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes keys, their values, and the ids of bundled cases and requirements."""
    from numaproof.conformance.selection import listing

    key, colon, _ = incomplete.partition(":")
    if colon:
        known = [(f"{key}:{one}", "") for one in _values(key)]
    else:
        listed = (*listing.cases(incomplete), *listing.requirements(incomplete))
        known = [*((f"{one}:", what) for one, what in KEYS.items()), *_descriptions(listed)]
    return _items(one for one in known if one[0].startswith(incomplete))


def _values(key: str) -> Sequence[str]:
    from numaproof.conformance.selection import listing

    if key == "id":
        return sorted({name for one in listing.cases() for name in (one.id, *one.aliases)})
    if key == "requirement":
        return sorted({row for one in listing.cases() for row in one.requirements})
    from numaproof.conformance.cases import loading
    from numaproof.conformance.requirements import load_registry
    from numaproof.conformance.selection.patterns import Selection

    return Selection((), (), load_registry(), _features).values(key, loading.bundled_cases())


def _features(case_id: str) -> tuple[str, ...]:
    """Returns the features that a case needs; imported late, because it plays the case."""
    from numaproof.conformance.selection import needs

    return needs.features_of(case_id)


_WHAT = f"KEY:GLOB with a key of {', '.join(KEYS)}; or a glob of case or requirement ids"

exclude_option = click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="Leave out cases that match PATTERN (see --select). Repeatable.",
    shell_complete=complete_pattern,
)


def own_cases_option(help: str) -> Callable[[F], F]:  # noqa: A002 - as click
    """Returns the option that names the user's own case files."""
    path = click.Path(exists=True, path_type=Path)
    return click.option("--cases", "own", type=path, multiple=True, help=help)


def select_options(command: F) -> F:
    """Adds --select and --exclude to a command."""
    select = click.option(
        "--select",
        metavar="PATTERN",
        multiple=True,
        help=f"Select cases: {_WHAT}. Repeatable.",
        shell_complete=complete_pattern,
    )
    return select(exclude_option(command))


def selection(
    select: Sequence[str],
    exclude: Sequence[str],
    items: Iterable[Case | Recording],
    *,
    where: str = "",
    option: str = "--select ",
) -> Selection:
    """Turns the options into a selection.

    Args:
        select: the values of --select.
        exclude: the values of --exclude.
        items: the cases and recordings to select from.
        where: text to add after "no case" in the error for a pattern that matches nothing.
        option: the option or argument that `select` came from, for errors.

    Raises:
        click.UsageError: a pattern is invalid or matches nothing.
    """
    from numaproof.conformance.requirements import load_registry
    from numaproof.conformance.selection.patterns import Selection, SelectionError

    try:
        made = Selection(select, exclude, load_registry(), _features)
        made.check(items, where=where, option=option)
    except SelectionError as error:
        raise click.UsageError(str(error)) from None
    return made
