"""Violators of the feature gates of the CPU Manager's options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.config import gates
from numaproof.reference.config.options import OptionError, boolean
from numaproof.reference.cpu import options
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-gates")

_ALPHA = "CPUManagerPolicyAlphaOptions"
_BETA = "CPUManagerPolicyBetaOptions"
_OPTIONS = "CPUManagerPolicyOptions"


def _enabled(changes: Changes, change: Callable[[Any, Any, Any], Any]) -> None:
    """Lets other gates be on; `change` is given those as written, those known, those on."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        found = original(given, known)
        return {**found, **change(given.get("featureGates") or {}, known, found)}

    changes.around(gates, "enabled", enabled)


# The default of the gate for beta options


def _beta_is_off(changes: Changes, off: Callable[[Any, Any], bool]) -> None:
    """Lets beta options be hidden where nothing is said of them, and it is `off`."""
    _enabled(
        changes,
        lambda written, known, found: (
            {_BETA: False}
            if _BETA not in written and "AllBeta" not in written and off(written, known)
            else {}
        ),
    )


@seeds("CPU-GATE-001")
def beta_options_are_hidden_beside_other_gates(changes: Changes) -> None:
    """The gates of a configuration replace the defaults, instead of being laid over them."""
    _beta_is_off(changes, lambda written, known: bool(written))


@seeds("CPU-GATE-001", kubernetes="1.32")
def beta_options_are_hidden_until_options_are_stable(changes: Changes) -> None:
    """The gate for beta options came on with the general one's last stage, in 1.33."""
    _beta_is_off(changes, lambda written, known: not known[_OPTIONS].locked)


# Options that are open in spite of their gate


def _open(changes: Changes, option: str, maturity: str) -> None:
    """Lets an option need no gate while it is of that maturity."""

    def value(original: Any, name: str, text: str, found: Any, on: Any) -> Any:
        known = "stable" if (name, found) == (option, maturity) else found
        return original(name, text, known, on)

    changes.around(options, "value", value)


@seeds("CPU-GATE-002", kubernetes="1.32")
def full_pcpus_only_needs_no_gate_in_beta(changes: Changes) -> None:
    """The oldest option is there without any gate."""
    _open(changes, options.FULL_CORES, "beta")


@seeds("CPU-GATE-003")
def align_by_socket_needs_no_gate(changes: Changes) -> None:
    """The option goes with a Topology Manager policy, and is checked against that alone."""
    _open(changes, options.BY_SOCKET, "alpha")


@seeds("CPU-GATE-003")
def distribute_cpus_across_cores_needs_no_gate(changes: Changes) -> None:
    """The option counts as beta, as its sibling for NUMA nodes is."""
    _open(changes, options.ACROSS_CORES, "alpha")


@seeds("CPU-GATE-003", kubernetes="1.32")
def distribute_cpus_across_numa_needs_no_gate_in_alpha(changes: Changes) -> None:
    """The option was alpha for longer than this author believes."""
    _open(changes, options.ACROSS_NUMA, "alpha")


@seeds("CPU-GATE-003", kubernetes="1.32")
def strict_cpu_reservation_needs_no_gate_in_alpha(changes: Changes) -> None:
    """The option begins as beta."""
    _open(changes, options.STRICT, "alpha")


# Options that stay hidden in spite of their gate


def _hidden(changes: Changes, hides: Callable[[str, Any, Any], bool]) -> None:
    """Lets options be hidden, by their name and maturity and the gates that are on."""

    def value(original: Any, name: str, text: str, maturity: Any, on: Any) -> Any:
        if on is not None and hides(name, maturity, on):
            level = "Beta" if maturity == "beta" else "Alpha"
            raise OptionError(
                f'CPU Manager Policy {level}-level Options not enabled, but option "{name}" '
                "provided"
            )
        return original(name, text, maturity, on)

    changes.around(options, "value", value)


@seeds("CPU-GATE-004", kubernetes="1.32")
def distribute_cpus_across_numa_stays_hidden_in_alpha(changes: Changes) -> None:
    """The option is there as of its beta."""
    _hidden(
        changes,
        lambda name, maturity, on: (name, maturity) == (options.ACROSS_NUMA, "alpha"),
    )


@seeds("CPU-GATE-004", kubernetes="1.32")
def strict_cpu_reservation_stays_hidden_in_alpha(changes: Changes) -> None:
    """The option is there as of its beta."""
    _hidden(changes, lambda name, maturity, on: (name, maturity) == (options.STRICT, "alpha"))


@seeds("CPU-GATE-004", kubernetes="1.34")
def alpha_options_do_not_open_with_all_alpha(changes: Changes) -> None:
    """The gate itself has to be named."""
    _enabled(
        changes,
        lambda written, known, found: (
            {_ALPHA: False} if written.get("AllAlpha") and _ALPHA not in written else {}
        ),
    )


# Gates that govern other groups


@seeds("CPU-GATE-005")
def the_alpha_gate_closes_beta_options(changes: Changes) -> None:
    """Turned off by hand, the gate closes whatever is not stable yet."""
    _enabled(
        changes,
        lambda written, known, found: (
            {_BETA: False} if written.get(_ALPHA) is False and _BETA not in written else {}
        ),
    )


# Hidden options that are off


def _hidden_may_be_off(changes: Changes, level: str) -> None:
    def value(original: Any, name: str, text: str, maturity: Any, on: Any) -> Any:
        try:
            return original(name, text, maturity, on)
        except OptionError:
            if maturity != level or boolean(name, text):
                raise
            return False

    changes.around(options, "value", value)


@seeds("CPU-GATE-006")
def hidden_alpha_options_may_be_off(changes: Changes) -> None:
    """An option that is off does not need its gate."""
    _hidden_may_be_off(changes, "alpha")
