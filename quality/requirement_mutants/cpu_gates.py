"""Mutants of the CPU Manager's feature gates and policy options, and of its error messages."""

from __future__ import annotations

import dataclasses
import re
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.protocol.releases import NEWEST
from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.config import gates, reservation
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.config.options import OptionError, boolean
from numaproof.reference.cpu import options
from numaproof.reference.cpu import policy as cpu_policies
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.errors import StartError
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

seeds = SubjectBugs("cpu-gates")


# Machines whose CPUs differ from the checkpoint


@shape(StaticCPUPolicy, "restore")
def _restoring(change: Callable[[Any, int, int], Any], rule: Any, self: Any, state: Any) -> Any:
    """Lets `change` edit the state to restore, given the machine's CPUs and those in the state."""
    if not state.shared:
        return rule()
    kept_apart = self.reserved if self.options.strict else 0
    return rule(state=change(state, self.topology.cpus & ~kept_apart, state.all_cpus()))


@seeds("CPU-ERROR-001").by(_restoring)
def other_cpus_of_the_same_number_are_taken(state: Any, cpus: int, own: int) -> Any:
    """Accepts different CPUs if their number is unchanged."""
    if cpus.bit_count() != own.bit_count():
        return state
    return dataclasses.replace(state, shared=state.shared & cpus | cpus & ~own)


# After a refused start


@seeds("CPU-ERROR-002").around(startup, "start_cpus")
def missing_checkpoint_is_refused_while_pods_are_there(
    rule: Any, setup: Any, state_dir: Path, present: Any
) -> Any:
    """Refuses to start without a checkpoint while Guaranteed pods are on the node."""
    missing = not (state_dir / cpu_checkpoint.FILE_NAME).exists()
    if setup.cpu and missing and any(pod.qos == "Guaranteed" for pod in present):
        raise StartError("cpu", "start cpu manager error: there is no checkpoint")
    return rule()


_LAST_ENTRIES: dict[str, Any] = {}
"""The last state read before a refused start, by state directory."""


@seeds("CPU-ERROR-002")
def entries_of_the_deleted_checkpoint_come_back(changes: Changes) -> None:
    """Restores the entries of a checkpoint that was deleted after a refused start."""
    seen = changes.record_argument(StaticCPUPolicy, "restore", "state")

    def start_cpus(rule: Any, setup: Any, state_dir: Path) -> Any:
        place = str(state_dir)
        has_file = (state_dir / cpu_checkpoint.FILE_NAME).exists()
        try:
            manager = rule()
        except StartError:
            if seen:
                _LAST_ENTRIES[place] = seen[-1]
            raise
        last = _LAST_ENTRIES.pop(place, ())
        for uid, name, cpus in () if has_file else last:
            manager.state = manager.state.assign(uid, name, cpus & setup.topology.cpus)
        return manager

    changes.around(startup, "start_cpus", start_cpus)


# Error messages on restoring


@shape(startup, "start_cpus")
def _restore_errors(change: Callable[[str], str], rule: Any) -> Any:
    """Lets `change` reword errors on restoring the checkpoint."""
    try:
        return rule()
    except StartError as error:
        raise StartError(error.stage, change(str(error))) from None


@seeds("CPU-ERROR-003").by(_restore_errors)
def restore_errors_over_cpu_sets_come_without_advice(text: str) -> Any:
    """Omits the advice to drain the node from errors about CPU sets."""
    return text.partition(", please drain")[0] if "could not parse" in text else text


# Messages of rejected pods


@seeds("CPU-ERROR-004").around(NotEnoughCPUsError, "__init__")
def shortage_has_the_counts_the_wrong_way_round(rule: Any, count: Any, available: Any) -> Any:
    """Swaps the requested and available counts."""
    return rule(count=available, available=count)


@seeds("CPU-ERROR-004").around(StaticCPUPolicy, "allocate")
def shortage_counts_the_shared_pool_as_available(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Reports the whole shared pool, including reserved CPUs, as available."""
    try:
        return rule()
    except NotEnoughCPUsError:
        count = pod.exclusive_cpus(container)
        raise NotEnoughCPUsError(count, state.shared.bit_count()) from None


@seeds("CPU-ERROR-004").around(StaticCPUPolicy, "allocate")
def shortage_states_the_request_of_the_pod(rule: Any, self: Any, state: Any, pod: Any) -> Any:
    """Reports the request of the pod instead of the container."""
    try:
        return rule()
    except NotEnoughCPUsError:
        free = self.available(state) | state.reuse.of(pod.uid)
        total = sum(pod.exclusive_cpus(container) for container in pod.containers)
        raise NotEnoughCPUsError(total, free.bit_count()) from None


@seeds("CPU-ERROR-005").around(cpu_policies, "not_whole_cores")
def smt_refusal_states_the_missing_cpus(rule: Any, count: int, per_core: int) -> Any:
    """Reports how many CPUs are missing to whole cores instead of how many were requested."""
    return rule(count=per_core - count % per_core)


# Messages about refused options


@shape(options, "parse")
def _option_errors(change: Callable[[str], str], rule: Any) -> Any:
    try:
        return rule()
    except OptionError as error:
        raise OptionError(change(str(error))) from None


@seeds("CPU-ERROR-006").by(_option_errors)
def hidden_options_are_called_unknown(text: str) -> Any:
    """Calls options unknown if their gate hides them."""
    return re.sub(
        r'^CPU .* not enabled, but option ("[^"]*") provided$',
        r"unknown CPU Manager Policy option: \1",
        text,
    )


@seeds("CPU-ERROR-006").by(_option_errors)
def bad_values_come_without_their_option(text: str) -> Any:
    """Omits the option's name from errors about its value."""
    return re.sub(r'^bad value for option "[^"]*"', "bad value", text)


# Gates


_OPTIONS = "CPUManagerPolicyOptions"


@shape(gates, "enabled_gates")
def _filter_gates(
    keeps: Callable[[str, bool, Any], bool], rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Ignores configured gates for which `keeps` is false.

    `keeps` is called with the gate's name, its value and the gates known to the release.
    """
    wanted = decoded_config.get("featureGates")
    if isinstance(wanted, dict):
        kept = {name: on for name, on in wanted.items() if keeps(name, on, known_gates)}
        decoded_config = {**decoded_config, "featureGates": kept}
    return rule(decoded_config=decoded_config)


def _is_release(known_gates: Any, version: str) -> bool:
    return dict(known_gates) == dict(gates.of_release(version))


# Removed, locked and unknown gates


@seeds("CPU-GATE-010")
def gates_of_earlier_releases_are_passed_over(changes: Changes) -> None:
    """Ignores gates that earlier releases knew."""
    earlier = {name for release in gates.table().values() for name in release} - {"CPUManager"}
    _filter_gates(changes, lambda name, on, known_gates: name in known_gates or name not in earlier)


@seeds("CPU-GATE-010", kubernetes="1.31")
def gates_of_later_releases_are_known(changes: Changes) -> None:
    """Accepts gates that only later releases know."""
    newest = gates.of_release(NEWEST)
    _filter_gates(changes, lambda name, on, known_gates: name in known_gates or name not in newest)


@seeds("CPU-GATE-010").around(gates, "enabled_gates")
def gates_are_found_in_any_case(rule: Any, decoded_config: Any, known_gates: Any) -> Any:
    """Ignores the case of gate names."""
    wanted = decoded_config.get("featureGates")
    if isinstance(wanted, dict):
        names = {name.lower(): name for name in known_gates}
        named = {names.get(name.lower(), name): on for name, on in wanted.items()}
        decoded_config = {**decoded_config, "featureGates": named}
    return rule(decoded_config=decoded_config)


# Dependencies between gates


def _problems(changes: Changes, counts: Callable[[Any, Any, str], bool]) -> None:
    """Reports missing dependencies only of gates for which `counts` is true.

    `counts` is called with the configured gates, the known gates and the gate's name.
    """
    configurations = changes.record_argument(gates, "enabled_gates", "decoded_config")

    def problems(rule: Any, known_gates: Any) -> Iterator[str]:
        written = configurations[-1].get("featureGates") or {}
        for name, gate in known_gates.items():
            if counts(written, known_gates, name):
                yield from rule(known_gates={name: gate})

    changes.around(gates, "dependency_problems", problems)


@seeds("CPU-GATE-011").by(_problems)
def dependencies_that_are_off_by_default_are_not_missed(
    configured_gates: Any, known_gates: Any, name: str
) -> Any:
    """Reports only dependencies that the configuration turns off."""
    return any(configured_gates.get(needed) is False for needed in known_gates[name].needs)


@seeds("CPU-GATE-011").of(
    _problems, lambda configured_gates, known_gates, name: bool(configured_gates.get(name))
)
def gates_that_are_on_by_default_need_nothing() -> None:
    """Checks only gates that the configuration turns on."""


@seeds("CPU-GATE-011").around(gates, "dependency_problems")
def one_dependency_is_enough(rule: Any, gates: Any, known_gates: Any) -> Iterator[str]:
    """Accepts a gate if any of its dependencies is on."""
    for name, gate in known_gates.items():
        if not any(gates[needed] for needed in gate.needs):
            yield from rule(known_gates={name: gate})


# Options while their gate is off


@shape(gates, "enabled_gates", Changes.after)
def _stays_on(gate: str, enabled_gates: Any, decoded_config: Any, known_gates: Any) -> Any:
    """Keeps a gate on when ``AllBeta`` is false."""
    wanted = decoded_config.get("featureGates") or {}
    stays = wanted.get("AllBeta") is False and gate not in wanted and gate in known_gates
    return {**enabled_gates, gate: True} if stays else enabled_gates


@seeds("CPU-GATE-014", kubernetes="1.32").of(_stays_on, _OPTIONS)
def options_are_there_without_all_beta() -> None:
    """Turns the options' gate off only by its own name."""


# No Memory Manager


@seeds("MEM-GATE-001", kubernetes="1.31").around(startup, "has_memory_manager")
def memory_policy_static_runs_without_its_gate(rule: Any, config: Any) -> Any:
    """Runs the Memory Manager with the Static policy even if its gate is off."""
    return rule() or config.memory_policy == "Static"


@seeds("MEM-GATE-001", kubernetes="1.31").around(startup, "has_memory_manager")
def memory_policy_is_checked_without_its_gate(rule: Any, config: Any) -> Any:
    """Checks the policy's name even if the gate is off."""
    if config.memory_policy not in ("None", "Static"):
        raise StartError("memory", f'unknown policy: "{config.memory_policy}"')
    return rule()


@seeds("MEM-GATE-001", kubernetes="1.31").of(_stays_on, "MemoryManager")
def memory_manager_is_there_without_all_beta() -> None:
    """Turns the Memory Manager's gate off only by its own name."""


@seeds("MEM-GATE-001", kubernetes="1.30")
def memory_manager_is_always_there_in_its_beta(changes: Changes) -> None:
    """Ignores the gate in 1.30."""
    known_gates = changes.record_argument(gates, "enabled_gates", "known_gates")
    changes.around(
        startup, "has_memory_manager", lambda rule: rule() or _is_release(known_gates[-1], "1.30")
    )


# Options


_ALPHA = "CPUManagerPolicyAlphaOptions"
_BETA = "CPUManagerPolicyBetaOptions"


@shape(gates, "enabled_gates", Changes.after)
def _enable_gates(
    change: Callable[[Any, Any, Any], Any],
    enabled_gates: Any,
    decoded_config: Any,
    known_gates: Any,
) -> Any:
    """Lets `change` override gates, given the configured, known and enabled ones."""
    return {
        **enabled_gates,
        **change(decoded_config.get("featureGates") or {}, known_gates, enabled_gates),
    }


# The default of the gate for beta options


def _beta_is_off(changes: Changes, off: Callable[[Any, Any], bool]) -> None:
    """Turns the gate for beta options off if it isn't configured and `off` is true."""
    _enable_gates(
        changes,
        lambda configured_gates, known_gates, enabled_gates: (
            {_BETA: False}
            if _BETA not in configured_gates
            and "AllBeta" not in configured_gates
            and off(configured_gates, known_gates)
            else {}
        ),
    )


@seeds("CPU-GATE-001").of(
    _beta_is_off, lambda configured_gates, known_gates: bool(configured_gates)
)
def beta_options_are_hidden_beside_other_gates() -> None:
    """Replaces all defaults if the configuration sets any gate."""


@seeds("CPU-GATE-001", kubernetes="1.32").by(_beta_is_off)
def beta_options_are_hidden_until_options_are_stable(
    configured_gates: Any, known_gates: Any
) -> Any:
    """Turns the gate for beta options off until the gate for options is locked."""
    return not known_gates[_OPTIONS].is_locked


# Options that don't need their gate


@shape(options, "value")
def _open(option: str, while_: str, rule: Any, name: str, maturity: Any) -> Any:
    """Shows an option without its gate while its maturity is `while_`."""
    return rule(maturity="stable" if (name, maturity) == (option, while_) else maturity)


@seeds("CPU-GATE-002", kubernetes="1.32").of(_open, options.FULL_CORES, "beta")
def full_pcpus_only_needs_no_gate_in_beta() -> None:
    """Shows full-pcpus-only without a gate while it is beta."""


@seeds("CPU-GATE-003").of(_open, options.BY_SOCKET, "alpha")
def align_by_socket_needs_no_gate() -> None:
    """Shows align-by-socket without a gate."""


@seeds("CPU-GATE-003").of(_open, options.ACROSS_CORES, "alpha")
def distribute_cpus_across_cores_needs_no_gate() -> None:
    """Shows distribute-cpus-across-cores without a gate."""


@seeds("CPU-GATE-003", kubernetes="1.32").of(_open, options.ACROSS_NUMA, "alpha")
def distribute_cpus_across_numa_needs_no_gate_in_alpha() -> None:
    """Shows distribute-cpus-across-numa without a gate while it is alpha."""


@seeds("CPU-GATE-003", kubernetes="1.32").of(_open, options.STRICT, "alpha")
def strict_cpu_reservation_needs_no_gate_in_alpha() -> None:
    """Shows strict-cpu-reservation without a gate while it is alpha."""


# Options hidden although their gate is on


@shape(options, "value")
def _hide_options(hides: Change, rule: Any, name: str, maturity: Any, gates: Any) -> Any:
    """Hides options for which `hides` is true, given name, maturity and enabled gates."""
    if gates is not None and hides(name, maturity, gates):
        level = "Beta" if maturity == "beta" else "Alpha"
        raise OptionError(
            f'CPU Manager Policy {level}-level Options not enabled, but option "{name}" provided'
        )
    return rule()


@seeds("CPU-GATE-004", kubernetes="1.32").by(_hide_options)
def distribute_cpus_across_numa_stays_hidden_in_alpha(name: str, maturity: Any, on: Any) -> Any:
    """Hides distribute-cpus-across-numa while it is alpha."""
    return (name, maturity) == (options.ACROSS_NUMA, "alpha")


@seeds("CPU-GATE-004", kubernetes="1.32").by(_hide_options)
def strict_cpu_reservation_stays_hidden_in_alpha(name: str, maturity: Any, on: Any) -> Any:
    """Hides strict-cpu-reservation while it is alpha."""
    return (name, maturity) == (options.STRICT, "alpha")


@seeds("CPU-GATE-004", kubernetes="1.34").by(_enable_gates)
def alpha_options_do_not_open_with_all_alpha(
    configured_gates: Any, known_gates: Any, enabled_gates: Any
) -> Any:
    """Doesn't let ``AllAlpha`` turn on the gate for alpha options."""
    return (
        {_ALPHA: False}
        if configured_gates.get("AllAlpha") and _ALPHA not in configured_gates
        else {}
    )


# Gates that affect other groups


@seeds("CPU-GATE-005").by(_enable_gates)
def the_alpha_gate_closes_beta_options(
    configured_gates: Any, known_gates: Any, enabled_gates: Any
) -> Any:
    """Also hides beta options if the gate for alpha options is off."""
    return (
        {_BETA: False}
        if configured_gates.get(_ALPHA) is False and _BETA not in configured_gates
        else {}
    )


# Hidden options set to false


@seeds("CPU-GATE-006").around(options, "value")
def hidden_alpha_options_may_be_off(rule: Any, name: str, text: str, maturity: Any) -> Any:
    """Accepts a hidden alpha option if it is set to false."""
    try:
        return rule()
    except OptionError:
        if maturity != "alpha" or boolean(name, text):
            raise
        return False


@seeds("CPU-GATE-006").around(options, "value")
def hidden_alignment_by_socket_may_be_off(rule: Any, name: str, text: str) -> Any:
    """Accepts align-by-socket without its gate if it is set to false."""
    try:
        return rule()
    except OptionError:
        if name != "align-by-socket" or boolean(name, text):
            raise
        return False


# Order of checks


def _check_file(state_dir: str, policy: str, release: Any) -> None:
    """Raises a `StartError` if the CPU Manager's checkpoint is damaged or of another policy."""
    content = files.read(Path(state_dir) / cpu_checkpoint.FILE_NAME)
    if content is None:
        return
    try:
        cpu_checkpoint.restore(content, policy, {}, release.cpu_files)
    except CheckpointError as error:
        # Version 1 needs the running containers and is checked later.
        if "containerID" not in str(error):
            message = f"could not restore state from checkpoint: {error}"
            raise StartError("cpu", message) from None


@seeds("CPU-ERROR-007")
def checkpoint_is_read_before_the_memory_policy_is_made(changes: Changes) -> None:
    """Restores the CPU Manager's checkpoint before checking the memory policy."""
    started = changes.record_argument(startup, "start", "args")

    def make(rule: Any, config: Any, release: Any) -> Any:
        _check_file(started[-1].state_dir, config.cpu_policy, release)
        return rule()

    changes.around(startup, "make_memory_policy", make)


@seeds("CPU-ERROR-007").around(startup, "start")
def machine_is_discovered_before_the_configuration_is_read(
    rule: Any, args: Any, release: Any, discover: Any
) -> Any:
    """Discovers the machine before reading the configuration."""
    machine = args.machine or discover(args.root, release)
    try:
        cpu_topology.derive(machine)
    except cpu_topology.TopologyError as error:
        raise StartError("cpu", str(error)) from None
    return rule()


@seeds("CPU-ERROR-007").around(startup, "make_topology_policy")
def cpu_policy_is_made_before_the_topology_policy(
    rule: Any, config: Any, machine: Any, release: Any
) -> Any:
    """Creates the CPU policy before the topology policy."""
    with suppress(cpu_topology.TopologyError, ConfigError):
        topology = cpu_topology.derive(machine)
        reserved = reservation.reserved_cpus(
            config, topology.all_cpus, round_reservation=release.round_reservation
        )
        startup.make_cpu_policy(config, topology, reserved, release)
    return rule()


@seeds("CPU-ERROR-007")
def memory_policy_is_made_before_the_cpu_policy(changes: Changes) -> None:
    """Creates the memory policy before the CPU policy."""
    machines = changes.record_argument(startup, "make_topology_policy", "machine")

    def make_cpu(rule: Any, config: Any, release: Any) -> Any:
        if startup.has_memory_manager(config):
            startup.make_memory_policy(config, machines[-1], release)
        return rule()

    changes.around(startup, "make_cpu_policy", make_cpu)


@seeds("CPU-ERROR-007")
def reservation_is_checked_with_the_cpu_policy(changes: Changes) -> None:
    """Validates the CPU reservation only when the CPU policy is created."""
    problems: list[str] = []

    def reserved_cpus(rule: Any) -> Any:
        try:
            return rule()
        except ConfigError as error:
            problems.append(str(error))
            return Fraction()

    def make_cpu(rule: Any) -> Any:
        if problems:
            raise StartError("config", problems[0])
        return rule()

    changes.around(reservation, "reserved_cpus", reserved_cpus)
    changes.around(startup, "make_cpu_policy", make_cpu)
