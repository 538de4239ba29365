"""Violators of which feature gates a start takes, and of what the gates of managers do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.reference import startup
from numaproof.reference.config import gates
from numaproof.reference.errors import StartError
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

seeds = SubjectBugs("cpu-gates")

_OPTIONS = "CPUManagerPolicyOptions"


def _written(changes: Changes, keeps: Callable[[str, bool, Any], bool]) -> None:
    """Lets only those gates of a configuration count that a rule `keeps`.

    It is given a gate's name, whether it is turned on, and the gates that the release knows.
    """

    def enabled(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates")
        if isinstance(wanted, dict):
            kept = {name: on for name, on in wanted.items() if keeps(name, on, known)}
            given = {**given, "featureGates": kept}
        return original(given, known)

    changes.around(gates, "enabled", enabled)


def _is_release(known: Any, version: str) -> bool:
    return dict(known) == dict(gates.of_release(version))


# Gates that are gone, locked or unknown


@seeds("CPU-GATE-010")
def gates_of_earlier_releases_are_passed_over(changes: Changes) -> None:
    """A gate that was removed did what it does without one."""
    earlier = {name for release in gates.table().values() for name in release} - {"CPUManager"}
    _written(changes, lambda name, on, known: name in known or name not in earlier)


@seeds("CPU-GATE-010", kubernetes="1.31")
def gates_of_later_releases_are_known(changes: Changes) -> None:
    """One table of gates serves all releases."""
    newest = gates.of_release(NEWEST)
    _written(changes, lambda name, on, known: name in known or name not in newest)


@seeds("CPU-GATE-010")
def gates_are_found_in_any_case(changes: Changes) -> None:
    """Names are compared without looking at capital letters."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates")
        if isinstance(wanted, dict):
            names = {name.lower(): name for name in known}
            named = {names.get(name.lower(), name): on for name, on in wanted.items()}
            given = {**given, "featureGates": named}
        return original(given, known)

    changes.around(gates, "enabled", enabled)


# Gates that depend on others


def _problems(changes: Changes, counts: Callable[[Any, Any, str], bool]) -> None:
    """Lets a gate's missing dependencies be reported only where that gate `counts`.

    It is given the gates as written, those known, and the gate's name.
    """
    written: list[Any] = []

    def enabled(original: Any, given: Any, known: Any) -> Any:
        written.append(given.get("featureGates") or {})
        return original(given, known)

    def problems(original: Any, on: Any, known: Any) -> Iterator[str]:
        for name, gate in known.items():
            if counts(written[-1], known, name):
                yield from original(on, {name: gate})

    changes.around(gates, "enabled", enabled)
    changes.around(gates, "dependency_problems", problems)


@seeds("CPU-GATE-011")
def dependencies_that_are_off_by_default_are_not_missed(changes: Changes) -> None:
    """Only a gate that was turned off by hand contradicts one that needs it."""
    _problems(
        changes,
        lambda written, known, name: any(
            written.get(needed) is False for needed in known[name].needs
        ),
    )


@seeds("CPU-GATE-011")
def gates_that_are_on_by_default_need_nothing(changes: Changes) -> None:
    """Only gates that the configuration turns on are checked."""
    _problems(changes, lambda written, known, name: bool(written.get(name)))


@seeds("CPU-GATE-011")
def one_dependency_is_enough(changes: Changes) -> None:
    """A gate with several needs has them met with the first."""

    def problems(original: Any, on: Any, known: Any) -> Iterator[str]:
        for name, gate in known.items():
            if not any(on[needed] for needed in gate.needs):
                yield from original(on, {name: gate})

    changes.around(gates, "dependency_problems", problems)


# Options while their gate is off


@seeds("CPU-GATE-014", kubernetes="1.32")
def options_are_there_without_all_beta(changes: Changes) -> None:
    """The gate has to be named to be turned off."""
    _stays_on(changes, _OPTIONS)


def _stays_on(changes: Changes, gate: str) -> None:
    """Lets a gate stay on when all beta gates are turned off."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        found = original(given, known)
        wanted = given.get("featureGates") or {}
        stays = wanted.get("AllBeta") is False and gate not in wanted and gate in known
        return {**found, gate: True} if stays else found

    changes.around(gates, "enabled", enabled)


# No Memory Manager


@seeds("MEM-GATE-001", kubernetes="1.31")
def memory_policy_static_runs_without_its_gate(changes: Changes) -> None:
    """Who asks for the static policy gets a Memory Manager."""
    changes.around(
        startup,
        "has_memory_manager",
        lambda original, config: original(config) or config.memory_policy == "Static",
    )


@seeds("MEM-GATE-001", kubernetes="1.31")
def memory_policy_is_checked_without_its_gate(changes: Changes) -> None:
    """The policy's name is checked before anybody asks whether it is used."""

    def has(original: Any, config: Any) -> Any:
        if config.memory_policy not in ("None", "Static"):
            raise StartError("memory", f'unknown policy: "{config.memory_policy}"')
        return original(config)

    changes.around(startup, "has_memory_manager", has)


@seeds("MEM-GATE-001", kubernetes="1.31")
def memory_manager_is_there_without_all_beta(changes: Changes) -> None:
    """The gate has to be named to be turned off."""
    _stays_on(changes, "MemoryManager")


@seeds("MEM-GATE-001", kubernetes="1.30")
def memory_manager_is_always_there_in_its_beta(changes: Changes) -> None:
    """The gate does something as of its last release, 1.31, alone."""
    known_gates: list[Any] = []

    def enabled(original: Any, given: Any, known: Any) -> Any:
        known_gates.append(known)
        return original(given, known)

    changes.around(gates, "enabled", enabled)
    changes.around(
        startup,
        "has_memory_manager",
        lambda original, config: original(config) or _is_release(known_gates[-1], "1.30"),
    )
