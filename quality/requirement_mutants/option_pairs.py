"""Mutants that ignore an option or a policy while another option or policy is on.

They are generated from tables: one for each ordered pair, on each kind of machine where the pair
has an effect. Cases must notice it at the lowest level where it can be seen.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.reference import startup
from numaproof.reference.config import configuration
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_SOCKET,
    BY_UNCORE,
    FULL_CORES,
    INCOMPATIBLE,
    STRICT,
)
from numaproof.reference.topology.options import CLOSEST, MAX_ALLOWABLE_NUMA_NODES
from numaproof.reference.topology.policy import BEST_EFFORT, NONE, RESTRICTED, SINGLE_NUMA_NODE
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.messages import Level
    from numaproof.reference.config.configuration import Config
    from numaproof.reference.cpu.options import StaticOptions
    from numaproof.reference.cpu.topology import CPUTopology

    Condition = Callable[[Config, StaticOptions, CPUTopology], bool]

seeds = SubjectBugs("cpu-options")


class Option(NamedTuple):
    """An option of the static policy.

    Attributes:
        name: its name in the configuration.
        field: its name in `StaticOptions`.
        level: the lowest level at which cases can see its effect.
    """

    name: str
    field: str
    level: Level


OPTIONS = (
    Option(FULL_CORES, "full_cores", "invariants"),
    Option(ACROSS_NUMA, "across_numa", "placement"),
    Option(ACROSS_CORES, "across_cores", "placement"),
    Option(BY_SOCKET, "by_socket", "admission"),
    Option(STRICT, "strict", "invariants"),
    Option(BY_UNCORE, "by_uncore", "placement"),
)


def _go_together(*names: str) -> bool:
    return not any({*pair} <= {*names} for pair in INCOMPATIBLE)


def _lose(changes: Changes, option: Option, when: Condition) -> None:
    """Ignores an option when a condition is met."""
    configs = changes.record_argument(startup, "make_cpu_policy", "config", inside=True)

    def make(rule: Any, topology: CPUTopology, options: StaticOptions) -> Any:
        lost = when(configs[-1], options, topology)
        return rule(options=replace(options, **{option.field: False}) if lost else options)

    changes.around(startup, "make_static", make)


# Pairs of options on each kind of machine

MACHINES: Mapping[str, Callable[[CPUTopology], bool]] = {
    "with SMT": lambda topology: (
        topology.has_even_cores and topology.cpu_count > topology.core_count
    ),
    "without SMT": lambda topology: topology.cpu_count == topology.core_count,
    "with unequal cores": lambda topology: not topology.has_even_cores,
}

NOT_SEEN = {
    # Every core has one CPU anyway.
    (FULL_CORES, "without SMT"),
    (ACROSS_CORES, "without SMT"),
}
"""Options that change nothing on a kind of machine."""

UNCLEAR = {
    # The documents and the kubelet disagree about which requests are whole cores.
    (ACROSS_NUMA, FULL_CORES, "with unequal cores"),
    (BY_UNCORE, FULL_CORES, "with unequal cores"),
}
"""Pairs without an answer that all correct programs give."""


def _add_pairs() -> None:
    for option, other, machines in product(OPTIONS, OPTIONS, MACHINES):
        if option is other or not _go_together(option.name, other.name):
            continue
        if (option.name, machines) in NOT_SEEN or (option.name, other.name, machines) in UNCLEAR:
            continue
        seeds.add(
            _id(f"{option.name} is lost by {other.name} {machines}"),
            f"Ignores {option.name} next to {other.name} on machines {machines}.",
            "CPU-OPT-PAIR-005",
            option.level,
            _lose,
            option,
            _both(other, MACHINES[machines]),
        )


def _both(other: Option, fits: Callable[[CPUTopology], bool]) -> Condition:
    return lambda config, options, topology: getattr(options, other.field) and fits(topology)


def _id(words: str) -> str:
    return words.lower().replace(" ", "-")


_add_pairs()


# Incompatible pairs with a third option


def _forgive(changes: Changes, pair: tuple[str, str], dropped: str, third: str) -> None:
    """Drops an option of an incompatible pair if a third option is on."""

    def parse(rule: Any, policy_options: Mapping[str, str]) -> Any:
        if not {*pair, third} <= policy_options.keys():
            return rule()
        left = {name: text for name, text in policy_options.items() if name != dropped}
        return rule(policy_options=left)

    changes.around(cpu_options, "parse", parse)


def _add_triples() -> None:
    for (number, pair), third in product(enumerate(INCOMPATIBLE, 1), OPTIONS):
        for kept, dropped in (pair, pair[::-1]):
            if third.name not in pair and _go_together(kept, third.name):
                seeds.add(
                    _id(f"{dropped} yields to {kept} next to {third.name}"),
                    f"Drops {dropped} instead of refusing {kept} if {third.name} is on.",
                    f"CPU-OPT-PAIR-00{number}",
                    "admission",
                    _forgive,
                    pair,
                    dropped,
                    third.name,
                )


_add_triples()


# Options and policies

SETTINGS: Mapping[str, Callable[[Config], bool]] = {
    **{
        f"policy {name}": partial(lambda name, config: config.topology_policy == name, name)
        for name in (NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)
    },
    "scope pod": lambda config: config.topology_scope == "pod",
    "policy Static": lambda config: config.memory_policy == "Static",
}
"""Policies and scopes of the other managers."""

NO_EFFECT = {
    (BY_SOCKET, "policy none"),
    (BY_SOCKET, "policy single-numa-node"),
    (ACROSS_NUMA, "policy single-numa-node"),
}
"""Options with settings under which they are refused or change nothing."""


def _add_settings() -> None:
    for option, (setting, holds) in product(OPTIONS, SETTINGS.items()):
        if (option.name, setting) in NO_EFFECT:
            continue
        admits_all = (option.name, setting) == (BY_SOCKET, "policy best-effort")
        seeds.add(
            _id(f"{option.name} is lost under {setting}"),
            f"Ignores {option.name} under {setting}.",
            "CPU-OPT-PAIR-006",
            "placement" if admits_all else option.level,
            _lose,
            option,
            _under(holds),
        )


def _under(holds: Callable[[Config], bool]) -> Condition:
    return lambda config, options, topology: holds(config)


_add_settings()

INSTEAD: tuple[tuple[str, str, str, Level], ...] = (
    ("topology_policy", RESTRICTED, BEST_EFFORT, "invariants"),
    ("topology_policy", SINGLE_NUMA_NODE, BEST_EFFORT, "invariants"),
    ("topology_policy", BEST_EFFORT, NONE, "placement"),
    ("topology_scope", "pod", "container", "invariants"),
)
"""Fields of `Config`, values, what these are lost to, and the level at which this is seen."""


def _replace(changes: Changes, option: str, field: str, lost: str, instead: str) -> None:
    """Replaces a setting next to an option."""

    def load(config: Config) -> Config:
        on = option in (config.cpu_options or {}) and getattr(config, field) == lost
        changed: Any = {field: instead} if on else {}
        return replace(config, **changed)

    changes.after(configuration, "load", load)


def _add_lost_settings() -> None:
    for option, (field, lost, instead, level) in product(OPTIONS, INSTEAD):
        if (option.name, lost) == (BY_SOCKET, SINGLE_NUMA_NODE):
            continue  # refused together
        seeds.add(
            _id(f"{lost} is lost by {option.name}"),
            f"Ignores {lost} next to {option.name}.",
            "CPU-OPT-PAIR-006",
            level,
            _replace,
            option.name,
            field,
            lost,
            instead,
        )


_add_lost_settings()


# Topology Manager options


def _lose_topology_option(changes: Changes, option: str, when: Callable[[Config], bool]) -> None:
    def load(config: Config) -> Config:
        given = config.topology_options
        if not given or option not in given or not when(config):
            return config
        left = {name: text for name, text in given.items() if name != option}
        return replace(config, topology_options=left)

    changes.after(configuration, "load", load)


def _add_topology_options() -> None:
    rows: tuple[tuple[str, str, str, Level], ...] = (
        (CLOSEST, MAX_ALLOWABLE_NUMA_NODES, "TOPO-OPT-001", "placement"),
        (MAX_ALLOWABLE_NUMA_NODES, CLOSEST, "TOPO-OPT-004", "admission"),
    )
    without_effect = {(CLOSEST, "policy single-numa-node")}
    for option, other, requirement, level in rows:
        conditions = {f"lost by {other}": partial(_has_topology_option, other)} | {
            f"lost under {setting}": holds
            for setting, holds in SETTINGS.items()
            if setting != "policy none" and (option, setting) not in without_effect
        }
        for how, when in conditions.items():
            seeds.add(
                _id(f"{option} is {how}"),
                f"Ignores {option}: it is {how}.",
                requirement,
                level,
                _lose_topology_option,
                option,
                when,
            )


def _has_topology_option(name: str, config: Config) -> bool:
    return name in (config.topology_options or {})


_add_topology_options()
