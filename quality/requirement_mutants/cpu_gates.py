"""Violators of the gates and options of the CPU Manager."""

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


# A machine with other CPUs than the checkpoint


@shape(StaticCPUPolicy, "restore")
def _restoring(change: Callable[[Any, int, int], Any], rule: Any, self: Any, state: Any) -> Any:
    """Lets another state be restored; `change` is given it, the machine's CPUs and its own."""
    if not state.shared:
        return rule()
    kept_apart = self.reserved if self.options.strict else 0
    return rule(state=change(state, self.topology.cpus & ~kept_apart, state.all_cpus()))


@seeds("CPU-ERROR-001").by(_restoring)
def other_cpus_of_the_same_number_are_taken(state: Any, cpus: int, own: int) -> Any:
    """The machine is the same one if it has as many CPUs."""
    if cpus.bit_count() != own.bit_count():
        return state
    return dataclasses.replace(state, shared=state.shared & cpus | cpus & ~own)


# After a refused start


@seeds("CPU-ERROR-002").around(startup, "start_cpus")
def missing_checkpoint_is_refused_while_pods_are_there(
    rule: Any, setup: Any, state_dir: Path, present: Any
) -> Any:
    """Pods on the node had CPUs, so a start without a checkpoint has lost them."""
    missing = not (state_dir / cpu_checkpoint.FILE_NAME).exists()
    if setup.cpu and missing and any(pod.qos == "Guaranteed" for pod in present):
        raise StartError("cpu", "start cpu manager error: there is no checkpoint")
    return rule()


_LAST_ENTRIES: dict[str, Any] = {}
"""What containers had when a start was refused, by its state directory."""


@seeds("CPU-ERROR-002")
def entries_of_the_deleted_checkpoint_come_back(changes: Changes) -> None:
    """The pods that are still on the node keep what the file said before it was deleted."""
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


# What an error in restoring says


@shape(startup, "start_cpus")
def _restore_errors(change: Callable[[str], str], rule: Any) -> Any:
    """Lets errors in restoring the checkpoint be worded otherwise."""
    try:
        return rule()
    except StartError as error:
        raise StartError(error.stage, change(str(error))) from None


@seeds("CPU-ERROR-003").by(_restore_errors)
def restore_errors_over_cpu_sets_come_without_advice(text: str) -> Any:
    """Advice is given where the file as a whole cannot be read."""
    return text.partition(", please drain")[0] if "could not parse" in text else text


# What refusals of pods say


@seeds("CPU-ERROR-004").around(NotEnoughCPUsError, "__init__")
def shortage_has_the_counts_the_wrong_way_round(rule: Any, count: Any, available: Any) -> Any:
    """Two numbers in a row."""
    return rule(count=available, available=count)


@seeds("CPU-ERROR-004").around(StaticCPUPolicy, "allocate")
def shortage_counts_the_shared_pool_as_available(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Available is what is shared, with the reserved CPUs."""
    try:
        return rule()
    except NotEnoughCPUsError:
        count = pod.exclusive_cpus(container)
        raise NotEnoughCPUsError(count, state.shared.bit_count()) from None


@seeds("CPU-ERROR-004").around(StaticCPUPolicy, "allocate")
def shortage_states_the_request_of_the_pod(rule: Any, self: Any, state: Any, pod: Any) -> Any:
    """It is the pod that is rejected, so its sum is stated."""
    try:
        return rule()
    except NotEnoughCPUsError:
        free = self.available(state) | state.reuse.of(pod.uid)
        total = sum(pod.exclusive_cpus(container) for container in pod.containers)
        raise NotEnoughCPUsError(total, free.bit_count()) from None


@seeds("CPU-ERROR-005").around(cpu_policies, "not_whole_cores")
def smt_refusal_states_the_missing_cpus(rule: Any, count: int, per_core: int) -> Any:
    """What is missing to a multiple is more useful than what was requested."""
    return rule(count=per_core - count % per_core)


# What refusals of options say


@shape(options, "parse")
def _option_errors(change: Callable[[str], str], rule: Any) -> Any:
    try:
        return rule()
    except OptionError as error:
        raise OptionError(change(str(error))) from None


@seeds("CPU-ERROR-006").by(_option_errors)
def hidden_options_are_called_unknown(text: str) -> Any:
    """What is hidden by its gate is not there."""
    return re.sub(
        r'^CPU .* not enabled, but option ("[^"]*") provided$',
        r"unknown CPU Manager Policy option: \1",
        text,
    )


@seeds("CPU-ERROR-006").by(_option_errors)
def bad_values_come_without_their_option(text: str) -> Any:
    """The value is quoted, and its option is not."""
    return re.sub(r'^bad value for option "[^"]*"', "bad value", text)


# Gates


_OPTIONS = "CPUManagerPolicyOptions"


@shape(gates, "enabled_gates")
def _filter_gates(
    keeps: Callable[[str, bool, Any], bool], rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Lets only those gates of a configuration count that a rule `keeps`.

    It is given a gate's name, whether it is turned on, and the gates that the release knows.
    """
    wanted = decoded_config.get("featureGates")
    if isinstance(wanted, dict):
        kept = {name: on for name, on in wanted.items() if keeps(name, on, known_gates)}
        decoded_config = {**decoded_config, "featureGates": kept}
    return rule(decoded_config=decoded_config)


def _is_release(known_gates: Any, version: str) -> bool:
    return dict(known_gates) == dict(gates.of_release(version))


# Gates that are gone, locked or unknown


@seeds("CPU-GATE-010")
def gates_of_earlier_releases_are_passed_over(changes: Changes) -> None:
    """A gate that was removed did what it does without one."""
    earlier = {name for release in gates.table().values() for name in release} - {"CPUManager"}
    _filter_gates(changes, lambda name, on, known_gates: name in known_gates or name not in earlier)


@seeds("CPU-GATE-010", kubernetes="1.31")
def gates_of_later_releases_are_known(changes: Changes) -> None:
    """One table of gates serves all releases."""
    newest = gates.of_release(NEWEST)
    _filter_gates(changes, lambda name, on, known_gates: name in known_gates or name not in newest)


@seeds("CPU-GATE-010").around(gates, "enabled_gates")
def gates_are_found_in_any_case(rule: Any, decoded_config: Any, known_gates: Any) -> Any:
    """Names are compared without looking at capital letters."""
    wanted = decoded_config.get("featureGates")
    if isinstance(wanted, dict):
        names = {name.lower(): name for name in known_gates}
        named = {names.get(name.lower(), name): on for name, on in wanted.items()}
        decoded_config = {**decoded_config, "featureGates": named}
    return rule(decoded_config=decoded_config)


# Gates that depend on others


def _problems(changes: Changes, counts: Callable[[Any, Any, str], bool]) -> None:
    """Lets a gate's missing dependencies be reported only where that gate `counts`.

    It is given the gates as written, those known, and the gate's name.
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
    """Only a gate that was turned off by hand contradicts one that needs it."""
    return any(configured_gates.get(needed) is False for needed in known_gates[name].needs)


@seeds("CPU-GATE-011").of(
    _problems, lambda configured_gates, known_gates, name: bool(configured_gates.get(name))
)
def gates_that_are_on_by_default_need_nothing() -> None:
    """Only gates that the configuration turns on are checked."""


@seeds("CPU-GATE-011").around(gates, "dependency_problems")
def one_dependency_is_enough(rule: Any, gates: Any, known_gates: Any) -> Iterator[str]:
    """A gate with several needs has them met with the first."""
    for name, gate in known_gates.items():
        if not any(gates[needed] for needed in gate.needs):
            yield from rule(known_gates={name: gate})


# Options while their gate is off


@shape(gates, "enabled_gates", Changes.after)
def _stays_on(gate: str, enabled_gates: Any, decoded_config: Any, known_gates: Any) -> Any:
    """Lets a gate stay on when all beta gates are turned off."""
    wanted = decoded_config.get("featureGates") or {}
    stays = wanted.get("AllBeta") is False and gate not in wanted and gate in known_gates
    return {**enabled_gates, gate: True} if stays else enabled_gates


@seeds("CPU-GATE-014", kubernetes="1.32").of(_stays_on, _OPTIONS)
def options_are_there_without_all_beta() -> None:
    """The gate has to be named to be turned off."""


# No Memory Manager


@seeds("MEM-GATE-001", kubernetes="1.31").around(startup, "has_memory_manager")
def memory_policy_static_runs_without_its_gate(rule: Any, config: Any) -> Any:
    """Who asks for the static policy gets a Memory Manager."""
    return rule() or config.memory_policy == "Static"


@seeds("MEM-GATE-001", kubernetes="1.31").around(startup, "has_memory_manager")
def memory_policy_is_checked_without_its_gate(rule: Any, config: Any) -> Any:
    """The policy's name is checked before anybody asks whether it is used."""
    if config.memory_policy not in ("None", "Static"):
        raise StartError("memory", f'unknown policy: "{config.memory_policy}"')
    return rule()


@seeds("MEM-GATE-001", kubernetes="1.31").of(_stays_on, "MemoryManager")
def memory_manager_is_there_without_all_beta() -> None:
    """The gate has to be named to be turned off."""


@seeds("MEM-GATE-001", kubernetes="1.30")
def memory_manager_is_always_there_in_its_beta(changes: Changes) -> None:
    """The gate does something as of its last release, 1.31, alone."""
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
    """Lets other gates be on; `change` is given those as written, those known, those on."""
    return {
        **enabled_gates,
        **change(decoded_config.get("featureGates") or {}, known_gates, enabled_gates),
    }


# The default of the gate for beta options


def _beta_is_off(changes: Changes, off: Callable[[Any, Any], bool]) -> None:
    """Lets beta options be hidden where nothing is said of them, and it is `off`."""
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
    """The gates of a configuration replace the defaults, instead of being laid over them."""


@seeds("CPU-GATE-001", kubernetes="1.32").by(_beta_is_off)
def beta_options_are_hidden_until_options_are_stable(
    configured_gates: Any, known_gates: Any
) -> Any:
    """The gate for beta options came on with the general one's last stage, in 1.33."""
    return not known_gates[_OPTIONS].is_locked


# Options that are open in spite of their gate


@shape(options, "value")
def _open(option: str, while_: str, rule: Any, name: str, maturity: Any) -> Any:
    """Lets an option need no gate while it has that maturity."""
    return rule(maturity="stable" if (name, maturity) == (option, while_) else maturity)


@seeds("CPU-GATE-002", kubernetes="1.32").of(_open, options.FULL_CORES, "beta")
def full_pcpus_only_needs_no_gate_in_beta() -> None:
    """The oldest option is there without any gate."""


@seeds("CPU-GATE-003").of(_open, options.BY_SOCKET, "alpha")
def align_by_socket_needs_no_gate() -> None:
    """The option goes with a Topology Manager policy, and is checked against that alone."""


@seeds("CPU-GATE-003").of(_open, options.ACROSS_CORES, "alpha")
def distribute_cpus_across_cores_needs_no_gate() -> None:
    """The option counts as beta, as its sibling for NUMA nodes is."""


@seeds("CPU-GATE-003", kubernetes="1.32").of(_open, options.ACROSS_NUMA, "alpha")
def distribute_cpus_across_numa_needs_no_gate_in_alpha() -> None:
    """Treats the option as beta while it is still alpha."""


@seeds("CPU-GATE-003", kubernetes="1.32").of(_open, options.STRICT, "alpha")
def strict_cpu_reservation_needs_no_gate_in_alpha() -> None:
    """The option begins as beta."""


# Options that stay hidden in spite of their gate


@shape(options, "value")
def _hide_options(hides: Change, rule: Any, name: str, maturity: Any, gates: Any) -> Any:
    """Lets options be hidden, by their name and maturity and the gates that are on."""
    if gates is not None and hides(name, maturity, gates):
        level = "Beta" if maturity == "beta" else "Alpha"
        raise OptionError(
            f'CPU Manager Policy {level}-level Options not enabled, but option "{name}" provided'
        )
    return rule()


@seeds("CPU-GATE-004", kubernetes="1.32").by(_hide_options)
def distribute_cpus_across_numa_stays_hidden_in_alpha(name: str, maturity: Any, on: Any) -> Any:
    """The option is there as of its beta."""
    return (name, maturity) == (options.ACROSS_NUMA, "alpha")


@seeds("CPU-GATE-004", kubernetes="1.32").by(_hide_options)
def strict_cpu_reservation_stays_hidden_in_alpha(name: str, maturity: Any, on: Any) -> Any:
    """The option is there as of its beta."""
    return (name, maturity) == (options.STRICT, "alpha")


@seeds("CPU-GATE-004", kubernetes="1.34").by(_enable_gates)
def alpha_options_do_not_open_with_all_alpha(
    configured_gates: Any, known_gates: Any, enabled_gates: Any
) -> Any:
    """The gate itself has to be named."""
    return (
        {_ALPHA: False}
        if configured_gates.get("AllAlpha") and _ALPHA not in configured_gates
        else {}
    )


# Gates that govern other groups


@seeds("CPU-GATE-005").by(_enable_gates)
def the_alpha_gate_closes_beta_options(
    configured_gates: Any, known_gates: Any, enabled_gates: Any
) -> Any:
    """Turned off by hand, the gate closes whatever is not stable yet."""
    return (
        {_BETA: False}
        if configured_gates.get(_ALPHA) is False and _BETA not in configured_gates
        else {}
    )


# Hidden options that are off


@seeds("CPU-GATE-006").around(options, "value")
def hidden_alpha_options_may_be_off(rule: Any, name: str, text: str, maturity: Any) -> Any:
    """An option that is off does not need its gate."""
    try:
        return rule()
    except OptionError:
        if maturity != "alpha" or boolean(name, text):
            raise
        return False


# Order


def _check_file(state_dir: str, policy: str, release: Any) -> None:
    """Raises a `StartError` if the CPU Manager's checkpoint is damaged, or of another policy."""
    content = files.read(Path(state_dir) / cpu_checkpoint.FILE_NAME)
    if content is None:
        return
    try:
        cpu_checkpoint.restore(content, policy, {}, release.cpu_files)
    except CheckpointError as error:
        # Version 1 needs the containers that run, and is left for later.
        if "containerID" not in str(error):
            message = f"could not restore state from checkpoint: {error}"
            raise StartError("cpu", message) from None


@seeds("CPU-ERROR-007")
def checkpoint_is_read_before_the_memory_policy_is_made(changes: Changes) -> None:
    """Each manager is made and started before the next one."""
    started = changes.record_argument(startup, "start", "args")

    def make(rule: Any, config: Any, release: Any) -> Any:
        _check_file(started[-1].state_dir, config.cpu_policy, release)
        return rule()

    changes.around(startup, "make_memory_policy", make)


@seeds("CPU-ERROR-007").around(startup, "start")
def machine_is_discovered_before_the_configuration_is_read(
    rule: Any, args: Any, release: Any, discover: Any
) -> Any:
    """Without a machine that has CPUs there is nothing to configure."""
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
    """The managers come first, and then what brings them together."""
    with suppress(cpu_topology.TopologyError, ConfigError):
        topology = cpu_topology.derive(machine)
        reserved = reservation.reserved_cpus(
            config, topology.all_cpus, round_reservation=release.round_reservation
        )
        startup.make_cpu_policy(config, topology, reserved, release)
    return rule()


@seeds("CPU-ERROR-007")
def memory_policy_is_made_before_the_cpu_policy(changes: Changes) -> None:
    """The managers are made in any order."""
    machines = changes.record_argument(startup, "make_topology_policy", "machine")

    def make_cpu(rule: Any, config: Any, release: Any) -> Any:
        if startup.has_memory_manager(config):
            startup.make_memory_policy(config, machines[-1], release)
        return rule()

    changes.around(startup, "make_cpu_policy", make_cpu)


@seeds("CPU-ERROR-007")
def reservation_is_checked_with_the_cpu_policy(changes: Changes) -> None:
    """Quantities and names of reserved CPUs are read where they are used, after the topology."""
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
