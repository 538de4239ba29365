"""Violators of the values that the CPU Manager's options and the configuration may have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.cpu import options
from numaproof.reference.departures import releases
from numaproof.reference.errors import StartError
from numaproof.reference.kubelet import cpulist, reservation, validation
from numaproof.reference.kubelet.options import OptionError
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
def unknown_options_are_passed_over(changes: Changes) -> None:
    """Options of later releases must not keep a node from starting."""
    _options_passed_over(changes, lambda text: True)


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
def yes_and_no_are_booleans(changes: Changes) -> None:
    """YAML has yes, no, on and off for booleans."""
    words = {"yes": True, "on": True, "no": False, "off": False}
    _also_booleans(changes, words.get)


@seeds("CPU-CONFIG-005")
def values_that_are_no_booleans_are_false(changes: Changes) -> None:
    """Only a true value turns an option on, and all others leave it off."""
    known = {"1", "t", "T", "TRUE", "true", "True"}
    _also_booleans(changes, lambda text: None if text in known else False)


@seeds("CPU-CONFIG-005")
def options_without_a_value_are_on(changes: Changes) -> None:
    """An option that is named without a value is on, as a flag is."""
    _also_booleans(changes, lambda text: None if text else True)


@seeds("CPU-CONFIG-005")
def booleans_are_read_in_any_case(changes: Changes) -> None:
    """Go's ParseBool takes true, True and TRUE, so it does not look at case."""
    words = {"true": True, "false": False}
    _also_booleans(changes, lambda text: words.get(text.lower()))


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
def full_pcpus_only_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.FULL_CORES)


@seeds("CPU-CONFIG-007")
def distribute_cpus_across_numa_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.ACROSS_NUMA)


@seeds("CPU-CONFIG-007")
def distribute_cpus_across_cores_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.ACROSS_CORES)


@seeds("CPU-CONFIG-007")
def align_by_socket_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.BY_SOCKET)


@seeds("CPU-CONFIG-007")
def strict_cpu_reservation_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.STRICT)


@seeds("CPU-CONFIG-007")
def prefer_align_by_uncorecache_is_on_when_it_is_mentioned(changes: Changes) -> None:
    """The option's name is looked for among the options."""
    _on_when_it_is_mentioned(changes, options.BY_UNCORE)


@seeds("CPU-CONFIG-007")
def options_that_are_off_conflict(changes: Changes) -> None:
    """Two options that exclude each other must not both be written down."""

    def parse(original: Any, given: Any, known: Any, gates: Any) -> Any:
        found = original(given, known, gates)
        for one, other in options.INCOMPATIBLE:
            if one in given and other in given:
                raise OptionError(
                    f"static policy options {one} and {other} can not be used at the same time"
                )
        return found

    changes.around(options, "parse", parse)


# CPUs reserved by name


@seeds("CPU-CONFIG-008")
def malformed_reserved_cpus_are_none(changes: Changes) -> None:
    """A list that cannot be read names no CPUs, and the amounts count."""

    def parse(original: Any, text: str) -> Any:
        try:
            return original(text)
        except cpulist.CPUListError:
            return CPUSet()

    changes.around(cpulist, "parse", parse)


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


@seeds("CPU-CONFIG-008")
def ranges_of_reserved_cpus_may_run_backwards(changes: Changes) -> None:
    """A range has two ends, whichever comes first."""

    def turned(text: str) -> str:
        ends = re.fullmatch("([0-9]+)-([0-9]+)", text)
        if ends is None or int(ends[1]) <= int(ends[2]):
            return text
        return f"{ends[2]}-{ends[1]}"

    _other_lists(changes, lambda text: ",".join(map(turned, text.split(","))))


@seeds("CPU-CONFIG-008")
def malformed_reserved_cpus_are_refused_by_the_cpu_manager(changes: Changes) -> None:
    """Whoever uses the list reads it, which is the CPU Manager."""
    problems: list[str] = []

    def parse(original: Any, text: str) -> Any:
        try:
            return original(text)
        except cpulist.CPUListError as error:
            problems.append(str(error))
            return CPUSet()

    def make(original: Any, *args: Any) -> Any:
        if problems:
            raise StartError("cpu", problems[0])
        return original(*args)

    changes.around(cpulist, "parse", parse)
    changes.around(startup, "make_cpu_policy", make)


def _without_field(changes: Changes, which: Callable[[Any], Collection[str]]) -> None:
    """Lets the check of CPUs reserved by name see the configuration without some fields."""
    changes.around(
        validation,
        "named_problems",
        lambda original, given, named: original(
            {name: value for name, value in given.items() if name not in which(given)}, named
        ),
    )


_CGROUPS = ("systemReservedCgroup", "kubeReservedCgroup")


@seeds("CPU-CONFIG-009")
def reserved_cpus_go_with_a_kube_cgroup(changes: Changes) -> None:
    """CPUs are reserved for the system, so only its cgroup is in the way."""
    _without_field(changes, lambda given: ("kubeReservedCgroup",))


@seeds("CPU-CONFIG-009")
def reserved_cpus_go_with_a_system_cgroup(changes: Changes) -> None:
    """CPUs reserved by name replace the kubelet's own reservation alone."""
    _without_field(changes, lambda given: ("systemReservedCgroup",))


@seeds("CPU-CONFIG-009")
def reserved_cpus_go_with_one_cgroup(changes: Changes) -> None:
    """The check asks for both cgroups where it should ask for either."""
    _without_field(changes, lambda given: () if all(map(given.get, _CGROUPS)) else _CGROUPS)


@seeds("CPU-CONFIG-009")
def reserved_cpus_go_with_cgroups_under_the_none_policy(changes: Changes) -> None:
    """Without the static policy no CPUs are reserved, so nothing excludes each other."""
    _without_field(
        changes, lambda given: () if given.get("cpuManagerPolicy") == "static" else _CGROUPS
    )


def _tolerating(changes: Changes, tolerates: Callable[[Any, CPUSet], bool]) -> None:
    """Lets offline CPUs be named, and left out, where the check `tolerates` that."""
    changes.around(
        reservation,
        "reserved_cpus",
        lambda original, config, online, **named: original(
            config, config.named_cpus if tolerates(config, online) else online, **named
        ),
    )

    def make(original: Any, topology: Any, chosen: Any, count: int, named: int, rules: Any) -> Any:
        if named & ~topology.cpus:
            named &= topology.cpus
            count = named.bit_count()
        return original(topology, chosen, count, named, rules)

    changes.around(startup, "make_static", make)


@seeds("CPU-CONFIG-010")
def offline_reserved_cpus_are_left_out(changes: Changes) -> None:
    """Of the CPUs that are named, those that are online are reserved."""
    _tolerating(changes, lambda config, online: bool(config.named_cpus.mask & online.mask))


@seeds("CPU-CONFIG-010")
def reserved_cpus_are_checked_by_the_highest_number(changes: Changes) -> None:
    """Every number up to the machine's highest counts as a CPU of it."""
    _tolerating(changes, lambda config, online: config.named_cpus.mask <= 2 * online.mask)


@seeds("CPU-CONFIG-010")
def offline_reserved_cpus_are_refused_under_static_alone(changes: Changes) -> None:
    """The none policy reserves nothing, so nothing can be missing."""
    _tolerating(changes, lambda config, online: config.cpu_policy != "static")
