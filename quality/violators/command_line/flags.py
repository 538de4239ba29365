"""Violators of the command line: what flags set, and what they count for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.config import configuration, flags
from numaproof.reference.config.fields import ConfigError
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("command-line")

_POLICIES = ("none", "static")
_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def _read(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Makes something else of the fields that the flags set."""
    changes.around(flags, "read", lambda original, *given: change(dict(original(*given))))


def _without(field: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda found: {name: value for name, value in found.items() if name != field}


def _beside(
    changes: Changes, change: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
) -> None:
    """Makes something else of the flags' fields, given those of the configuration, too."""

    def load(original: Any, given: Any, enabled: Any, unknown: Any, overriding: Any) -> Any:
        return original(given, enabled, unknown, change(dict(given), dict(overriding)))

    changes.around(configuration, "load", load)


# The CPU Manager's policy


@seeds("CPU-CONFIG-016")
def cpu_policy_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author takes a deprecated flag for one without effect."""
    _read(changes, _without("cpuManagerPolicy"))


@seeds("CPU-CONFIG-016")
def cpu_policy_flag_switches_the_policy_on_alone(changes: Changes) -> None:
    """A plausible author reads the flag as a switch."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        return (
            _without("cpuManagerPolicy")(found)
            if found.get("cpuManagerPolicy") == "none"
            else found
        )

    _read(changes, change)


@seeds("CPU-CONFIG-016")
def unknown_cpu_policy_flag_means_none(changes: Changes) -> None:
    """A plausible author falls back to the default."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        if found.get("cpuManagerPolicy", "none") not in _POLICIES:
            return found | {"cpuManagerPolicy": "none"}
        return found

    _read(changes, change)


# CPUs reserved by name


@seeds("CPU-CONFIG-017")
def reserved_cpus_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author takes a deprecated flag for one without effect."""
    _read(changes, _without("reservedSystemCPUs"))


@seeds("CPU-CONFIG-017")
def reserved_cpus_flag_fills_in_what_is_missing(changes: Changes) -> None:
    """A plausible author asks the flag only where the configuration names no CPUs."""

    def change(given: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        return _without("reservedSystemCPUs")(found) if given.get("reservedSystemCPUs") else found

    _beside(changes, change)


@seeds("CPU-CONFIG-017")
def reserved_cpus_flag_takes_no_words(changes: Changes) -> None:
    """A plausible author passes over a list that cannot be read."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        text = found.get("reservedSystemCPUs", "0")
        return found if text[:1].isdigit() else _without("reservedSystemCPUs")(found)

    _read(changes, change)


# CPUs reserved by quantity


@seeds("CPU-CONFIG-018")
def kube_reserved_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author reads one of the two flags."""
    _read(changes, _without("kubeReserved"))


@seeds("CPU-CONFIG-018")
def system_reserved_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author reads one of the two flags."""
    _read(changes, _without("systemReserved"))


@seeds("CPU-CONFIG-018")
def one_reservation_flag_stands_for_both(changes: Changes) -> None:
    """A plausible author lets the second flag replace the first."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        return _without("kubeReserved")(found) if "systemReserved" in found else found

    _read(changes, change)


# Flags that there are not


@seeds("CPU-CONFIG-019")
def unknown_flags_are_passed_over(changes: Changes) -> None:
    """A plausible author does not stumble over what does not concern the managers."""

    def read(original: Any, given: Any, release: Any, *rest: Any) -> Any:
        try:
            return original(given, release, *rest)
        except ConfigError as error:
            if "unknown flag" in str(error):
                return {}
            raise

    changes.around(flags, "read", read)


@seeds("CPU-CONFIG-019")
def flags_of_earlier_releases_are_taken(changes: Changes) -> None:
    """A plausible author never takes a flag out."""

    def read(original: Any, given: Any, release: Any, *rest: Any) -> Any:
        gone = set().union(*flags.table().values()) - flags.table()[release]
        return original(
            [one for one in given if one.removeprefix("--").partition("=")[0] not in gone],
            release,
            *rest,
        )

    changes.around(flags, "read", read)


@seeds("CPU-CONFIG-019")
def misspelt_flags_are_guessed(changes: Changes) -> None:
    """A plausible author means well with a flag whose first words are right."""

    def read(original: Any, given: Any, release: Any, *rest: Any) -> Any:
        known = [one for one in given if not one.startswith("--cpu-manager-pol")]
        return original(known, release, *rest)

    changes.around(flags, "read", read)


@seeds("CPU-CONFIG-019")
def removed_runtime_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author knows that old unit files still have the flag."""

    def read(original: Any, given: Any, release: Any, *rest: Any) -> Any:
        return original([one for one in given if "container-runtime=" not in one], release, *rest)

    changes.around(flags, "read", read)


# What counts more


@seeds("CPU-CONFIG-020")
def the_file_counts_more_than_flags(changes: Changes) -> None:
    """A plausible author takes the file for the last word, as flags are deprecated."""
    _beside(
        changes,
        lambda given, found: {name: one for name, one in found.items() if name not in given},
    )


@seeds("CPU-CONFIG-020")
def flags_add_to_the_maps_of_the_file(changes: Changes) -> None:
    """A plausible author merges what is a map in both."""

    def change(given: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        return {
            name: {**(given.get(name) or {}), **one} if isinstance(one, dict) else one
            for name, one in found.items()
        }

    _beside(changes, change)


@seeds("CPU-CONFIG-020")
def flags_leave_nothing_of_the_file(changes: Changes) -> None:
    """A plausible author reads the file only where there are no flags."""

    def load(original: Any, given: Any, enabled: Any, unknown: Any, overriding: Any) -> Any:
        return original({} if overriding else given, enabled, unknown, overriding)

    changes.around(configuration, "load", load)


# The Topology Manager's policy


@seeds("TOPO-POLICY-017")
def topology_policy_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author takes a deprecated flag for one without effect."""
    _read(changes, _without("topologyManagerPolicy"))


@seeds("TOPO-POLICY-017")
def unknown_topology_policy_flag_means_none(changes: Changes) -> None:
    """A plausible author falls back to the default."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        if found.get("topologyManagerPolicy", "none") not in _TOPOLOGY_POLICIES:
            return found | {"topologyManagerPolicy": "none"}
        return found

    _read(changes, change)


# The reconcile period


def _in_force(changes: Changes, change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> None:
    changes.around(
        configuration.Config, "in_force", lambda original, self: change(self, original(self))
    )


def _period(text: str) -> dict[str, str]:
    return {"cpuManagerReconcilePeriod": text}


@seeds("CPU-RECONCILE-003")
def reconcile_period_is_fixed(changes: Changes) -> None:
    """A plausible author lets the loop run at its default pace."""
    _in_force(changes, lambda _, found: found | _period("10s"))


@seeds("CPU-RECONCILE-003")
def reconcile_period_flag_is_passed_over(changes: Changes) -> None:
    """A plausible author takes a deprecated flag for one without effect."""
    _read(changes, _without("cpuManagerReconcilePeriod"))


@seeds("CPU-RECONCILE-003")
def reconcile_period_is_a_minute_at_most(changes: Changes) -> None:
    """A plausible author keeps the loop from falling asleep."""
    _in_force(
        changes,
        lambda self, found: found | _period("1m0s") if "m" in self.reconcile_period else found,
    )


@seeds("CPU-RECONCILE-010")
def reconcile_period_is_that_of_the_node_status(changes: Changes) -> None:
    """A plausible author goes by the description of the flag: the node status' five minutes."""
    _in_force(
        changes,
        lambda self, found: found | _period("5m0s") if self.reconcile_period == "10s" else found,
    )


@seeds("CPU-RECONCILE-010")
def reconcile_period_of_zero_stays(changes: Changes) -> None:
    """A plausible author takes a zero for a wish."""

    def load(original: Any, given: Any, *rest: Any) -> Any:
        zero = given.get("cpuManagerReconcilePeriod") == "0s"
        if zero:
            return original(given, *rest[:2], {**rest[2], "cpuManagerReconcilePeriod": "0s"})
        return original(given, *rest)

    changes.around(configuration, "load", load)
