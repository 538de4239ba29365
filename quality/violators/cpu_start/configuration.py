"""Violators of the values that the CPU Manager's options and the configuration may have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.reference.config import cpulist
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.deviations import releases
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

seeds = SubjectBugs("cpu-start")


# Options that are unknown


def _options_passed_over(changes: Changes, passes: Callable[[str], bool]) -> None:
    """Lets options that the release does not know be passed over, where their value `passes`."""
    changes.around(
        options,
        "parse",
        lambda original, given, known, gates: original(
            {name: text for name, text in given.items() if name in known or not passes(text)},
            known,
            gates,
        ),
    )


@seeds("CPU-CONFIG-004")
def unknown_options_may_be_off(changes: Changes) -> None:
    """An option that is off need not be known."""
    _options_passed_over(changes, lambda text: text == "false")


@seeds("CPU-CONFIG-004", kubernetes="1.31")
def options_of_later_releases_are_known(changes: Changes) -> None:
    """One table of options serves all releases."""
    newest = releases.TABLE[NEWEST].cpu_options

    def parse(original: Any, given: Any, known: Any, gates: Any) -> Any:
        try:
            return original(given, known, gates)
        except OptionError:
            return original(given, {**newest, **known}, gates)

    changes.around(options, "parse", parse)


# What an option may be set to


def _also_booleans(changes: Changes, read: Callable[[str], bool | None]) -> None:
    """Lets options have other values; `read` is None for a text that stays what it was."""

    def boolean(original: Any, name: str, text: str) -> Any:
        found = read(text)
        return original(name, text) if found is None else found

    changes.around(options, "boolean", boolean)


@seeds("CPU-CONFIG-005")
def numbers_are_booleans(changes: Changes) -> None:
    """Zero is false, and any other number is true."""
    _also_booleans(changes, lambda text: int(text) != 0 if re.fullmatch("[0-9]+", text) else None)


@seeds("CPU-CONFIG-005")
def booleans_may_have_spaces_around_them(changes: Changes) -> None:
    """Values are trimmed before they are read."""
    words = {"true": True, "false": False}
    _also_booleans(changes, lambda text: words.get(text.strip()))


def _no_booleans(changes: Changes, forms: Collection[str]) -> None:
    """Lets options have no value of these forms."""

    def boolean(original: Any, name: str, text: str) -> Any:
        if text in forms:
            problem = f'strconv.ParseBool: parsing "{text}": invalid syntax'
            raise OptionError(f'bad value for option "{name}": {problem}')
        return original(name, text)

    changes.around(options, "boolean", boolean)


@seeds("CPU-CONFIG-006")
def digits_are_no_booleans(changes: Changes) -> None:
    """A boolean is a word."""
    _no_booleans(changes, ("1", "0"))


@seeds("CPU-CONFIG-006")
def single_letters_are_no_booleans(changes: Changes) -> None:
    """A boolean is a whole word or a digit."""
    _no_booleans(changes, ("t", "T", "f", "F"))


@seeds("CPU-CONFIG-006")
def capital_letters_are_no_booleans(changes: Changes) -> None:
    """Of the single letters, only the small ones are booleans."""
    _no_booleans(changes, ("T", "F"))


@seeds("CPU-CONFIG-006")
def words_in_capitals_are_no_booleans(changes: Changes) -> None:
    """JSON's booleans are in small letters, and Python's begin with a capital one."""
    _no_booleans(changes, ("TRUE", "FALSE"))


@seeds("CPU-CONFIG-006")
def words_with_a_capital_are_no_booleans(changes: Changes) -> None:
    """JSON's booleans are in small letters."""
    _no_booleans(changes, ("True", "False"))


@seeds("CPU-CONFIG-006")
def only_the_words_are_booleans_of_the_negative(changes: Changes) -> None:
    """The forms of true are listed in the document, and false is just false."""
    _no_booleans(changes, ("0", "f", "F"))


# Options that are set to false


def _on_when_it_is_mentioned(changes: Changes, option: str) -> None:
    changes.around(
        options,
        "value",
        lambda original, name, *rest: original(name, *rest) or name == option,
    )


@seeds("CPU-CONFIG-007")
def distribute_cpus_across_numa_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.ACROSS_NUMA)


@seeds("CPU-CONFIG-007")
def align_by_socket_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.BY_SOCKET)


@seeds("CPU-CONFIG-007")
def prefer_align_by_uncorecache_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.BY_UNCORE)


# CPUs reserved by name


def _other_lists(changes: Changes, change: Callable[[str], str]) -> None:
    """Lets the configuration's CPU list be read as another one."""
    changes.around(cpulist, "parse", lambda original, text: original(change(text)))


@seeds("CPU-CONFIG-008")
def reserved_cpus_may_have_spaces(changes: Changes) -> None:
    """Lists are written with a space after the comma."""
    _other_lists(changes, lambda text: text.replace(" ", ""))


@seeds("CPU-CONFIG-008")
def reserved_cpus_may_end_in_a_comma(changes: Changes) -> None:
    """Empty parts of a list name nothing."""
    _other_lists(changes, lambda text: ",".join(part for part in text.split(",") if part))
