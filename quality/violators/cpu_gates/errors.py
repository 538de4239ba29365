"""Violators of what the CPU Manager's errors say, and of when they come."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import options
from numaproof.reference.cpu import policy as cpu_policies
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.policy import SMTAlignmentError, StaticCPUPolicy
from numaproof.reference.errors import StartError
from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.kubelet.options import OptionError
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

seeds = SubjectBugs("cpu-gates")


# A machine with other CPUs than the checkpoint


def _restoring(changes: Changes, change: Callable[[Any, int, int], Any]) -> None:
    """Lets another state be restored; `change` is given it, the machine's CPUs and its own."""

    def restore(original: Any, self: Any, state: Any) -> Any:
        if not state.shared:
            return original(self, state)
        kept_apart = self.reserved if self.options.strict else 0
        return original(self, change(state, self.topology.cpus & ~kept_apart, state.all_cpus()))

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-ERROR-001")
def cpus_that_went_offline_leave_the_pool(changes: Changes) -> None:
    """Shared CPUs that are gone are taken out, as long as no container has one exclusively."""
    _restoring(
        changes, lambda state, cpus, own: dataclasses.replace(state, shared=state.shared & cpus)
    )


@seeds("CPU-ERROR-001")
def cpus_that_came_online_join_the_pool(changes: Changes) -> None:
    """More CPUs than before do no harm: they are shared."""
    _restoring(
        changes,
        lambda state, cpus, own: dataclasses.replace(state, shared=state.shared | cpus & ~own),
    )


@seeds("CPU-ERROR-001")
def other_cpus_of_the_same_number_are_taken(changes: Changes) -> None:
    """The machine is the same one if it has as many CPUs."""

    def change(state: Any, cpus: int, own: int) -> Any:
        if cpus.bit_count() != own.bit_count():
            return state
        return dataclasses.replace(state, shared=state.shared & cpus | cpus & ~own)

    _restoring(changes, change)


@seeds("CPU-ERROR-001")
def a_pool_without_exclusive_cpus_is_made_anew(changes: Changes) -> None:
    """Where nobody has exclusive CPUs, the state holds nothing worth a refusal."""
    _restoring(
        changes,
        lambda state, cpus, own: (
            state if state.exclusive else dataclasses.replace(state, shared=cpus)
        ),
    )


# After a refused start

_REFUSED: dict[str, tuple[str, str]] = {}
"""What a start was refused for, by its state directory; kept for as long as the process runs."""


@seeds("CPU-ERROR-002")
def refusal_is_kept_until_the_process_ends(changes: Changes) -> None:
    """What was read of the checkpoint is kept in memory, and not read anew without a file."""

    def started(original: Any, setup: Any, release: Any, state_dir: Path, *rest: Any) -> Any:
        place = str(state_dir)
        if place in _REFUSED and not (state_dir / cpu_checkpoint.FILE_NAME).exists():
            stage, message = _REFUSED[place]
            raise StartError("cpu" if stage == "cpu" else "config", message)
        try:
            manager = original(setup, release, state_dir, *rest)
        except StartError as error:
            _REFUSED[place] = (error.stage, str(error))
            raise
        _REFUSED.pop(place, None)
        return manager

    changes.around(startup, "start_cpus", started)


@seeds("CPU-ERROR-002")
def missing_checkpoint_is_refused_while_pods_are_there(changes: Changes) -> None:
    """Pods on the node had CPUs, so a start without a checkpoint has lost them."""

    def started(original: Any, setup: Any, release: Any, state_dir: Path, present: Any) -> Any:
        missing = not (state_dir / cpu_checkpoint.FILE_NAME).exists()
        if setup.cpu and missing and any(pod.qos == "Guaranteed" for pod in present):
            raise StartError("cpu", "start cpu manager error: there is no checkpoint")
        return original(setup, release, state_dir, present)

    changes.around(startup, "start_cpus", started)


_LAST_ENTRIES: dict[str, Any] = {}
"""What containers had when a start was refused, by its state directory."""


@seeds("CPU-ERROR-002")
def entries_of_the_deleted_checkpoint_come_back(changes: Changes) -> None:
    """The pods that are still on the node keep what the file said before it was deleted."""
    seen: list[Any] = []

    def restore(original: Any, self: Any, state: Any) -> Any:
        seen.append(state)
        return original(self, state)

    def started(original: Any, setup: Any, release: Any, state_dir: Path, *rest: Any) -> Any:
        place = str(state_dir)
        has_file = (state_dir / cpu_checkpoint.FILE_NAME).exists()
        try:
            manager = original(setup, release, state_dir, *rest)
        except StartError:
            if seen:
                _LAST_ENTRIES[place] = seen[-1]
            raise
        last = _LAST_ENTRIES.pop(place, ())
        for uid, name, cpus in () if has_file else last:
            manager.state = manager.state.assign(uid, name, cpus & setup.topology.cpus)
        return manager

    changes.around(StaticCPUPolicy, "restore", restore)
    changes.around(startup, "start_cpus", started)


# What an error in restoring says


def _restore_errors(changes: Changes, change: Callable[[str], str]) -> None:
    """Lets errors in restoring the checkpoint be worded otherwise."""

    def started(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except StartError as error:
            raise StartError(error.stage, change(str(error))) from None

    changes.around(startup, "start_cpus", started)


@seeds("CPU-ERROR-003")
def restore_errors_name_the_file_without_its_folder(changes: Changes) -> None:
    """The file is known by its name."""
    _restore_errors(changes, lambda text: re.sub(r'file "[^"]*/([^"/]+)"', r'file "\1"', text))


@seeds("CPU-ERROR-003")
def restore_errors_do_not_say_to_drain_the_node(changes: Changes) -> None:
    """To delete the file is enough to start again."""
    _restore_errors(
        changes, lambda text: text.replace("please drain this node and delete", "please delete")
    )


@seeds("CPU-ERROR-003")
def restore_errors_over_the_policy_come_without_advice(changes: Changes) -> None:
    """Another policy is no damage: the file is fine, and need not be deleted."""
    _restore_errors(
        changes,
        lambda text: (
            text.partition(", please drain")[0] if "differs from state checkpoint" in text else text
        ),
    )


@seeds("CPU-ERROR-003")
def restore_errors_over_cpu_sets_come_without_advice(changes: Changes) -> None:
    """Advice is given where the file as a whole cannot be read."""
    _restore_errors(
        changes,
        lambda text: text.partition(", please drain")[0] if "could not parse" in text else text,
    )


# What refusals of pods say


@seeds("CPU-ERROR-004")
def shortage_has_the_counts_the_wrong_way_round(changes: Changes) -> None:
    """Two numbers in a row."""
    changes.around(
        NotEnoughCPUsError,
        "__init__",
        lambda original, self, requested, available: original(self, available, requested),
    )


@seeds("CPU-ERROR-004")
def shortage_counts_the_shared_pool_as_available(changes: Changes) -> None:
    """Available is what is shared, with the reserved CPUs."""

    def allocate(original: Any, self: Any, state: Any, reuse: Any, pod: Any, *rest: Any) -> Any:
        try:
            return original(self, state, reuse, pod, *rest)
        except NotEnoughCPUsError:
            count = pod.exclusive_cpus(rest[0])
            raise NotEnoughCPUsError(count, state.shared.bit_count()) from None

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-ERROR-004")
def shortage_states_the_request_of_the_pod(changes: Changes) -> None:
    """It is the pod that is rejected, so its sum is stated."""

    def allocate(original: Any, self: Any, state: Any, reuse: Any, pod: Any, *rest: Any) -> Any:
        try:
            return original(self, state, reuse, pod, *rest)
        except NotEnoughCPUsError:
            free = self.available(state) | reuse.of(pod.uid)
            total = sum(pod.exclusive_cpus(container) for container in pod.containers)
            raise NotEnoughCPUsError(total, free.bit_count()) from None

    changes.around(StaticCPUPolicy, "allocate", allocate)


def _smt_errors(changes: Changes, change: Callable[[str], str]) -> None:
    """Lets the refusals for SMT alignment be worded otherwise."""

    def check(original: Any, *args: Any) -> None:
        try:
            original(*args)
        except SMTAlignmentError as error:
            raise SMTAlignmentError(
                change(str(error).removeprefix("SMT Alignment Error: "))
            ) from None

    changes.around(StaticCPUPolicy, "check_alignment", check)


@seeds("CPU-ERROR-005")
def smt_shortage_leaves_out_the_cpus_per_core(changes: Changes) -> None:
    """Where the multiple is right, the size of a core is of no interest."""
    _smt_errors(
        changes,
        lambda text: re.sub(r", CPUs per core = \d+$", "", text),
    )


@seeds("CPU-ERROR-005")
def smt_shortage_counts_cores(changes: Changes) -> None:
    """Physical CPUs are cores."""

    def in_cores(text: str) -> str:
        per_core = re.search(r"per core = (\d+)$", text)
        if per_core is None:
            return text
        return re.sub(
            r"physical CPUs = (\d+)",
            lambda found: f"physical CPUs = {int(found[1]) // int(per_core[1])}",
            text,
        )

    _smt_errors(changes, in_cores)


@seeds("CPU-ERROR-005")
def smt_shortage_is_worded_as_a_wrong_multiple(changes: Changes) -> None:
    """One message serves both reasons."""
    _smt_errors(
        changes,
        lambda text: re.sub(
            r".*requested CPUs = (\d+), CPUs per core = (\d+)$",
            r"requested \1 cpus not multiple cpus per core = \2",
            text,
        ),
    )


@seeds("CPU-ERROR-005")
def smt_refusal_states_the_missing_cpus(changes: Changes) -> None:
    """What is missing to a multiple is more useful than what was requested."""

    def changed(original: Any, count: int, per_core: int) -> Any:
        return original(per_core - count % per_core, per_core)

    changes.around(cpu_policies, "not_whole_cores", changed)


# What refusals of options say


def _option_errors(changes: Changes, change: Callable[[str], str]) -> None:
    def parse(original: Any, *args: Any, **named: Any) -> Any:
        try:
            return original(*args, **named)
        except OptionError as error:
            raise OptionError(change(str(error))) from None

    changes.around(options, "parse", parse)


@seeds("CPU-ERROR-006")
def hidden_options_are_called_unknown(changes: Changes) -> None:
    """What is hidden by its gate is not there."""
    _option_errors(
        changes,
        lambda text: re.sub(
            r'^CPU .* not enabled, but option ("[^"]*") provided$',
            r"unknown CPU Manager Policy option: \1",
            text,
        ),
    )


@seeds("CPU-ERROR-006")
def unknown_options_are_called_hidden(changes: Changes) -> None:
    """An option that nobody knows is taken for an alpha option of a later release."""
    _option_errors(
        changes,
        lambda text: re.sub(
            r'^unknown CPU Manager Policy option: ("[^"]*")$',
            r"CPU Manager Policy Alpha-level Options not enabled, but option \1 provided",
            text,
        ),
    )


@seeds("CPU-ERROR-006")
def bad_values_come_without_their_option(changes: Changes) -> None:
    """The value is quoted, and its option is not."""
    _option_errors(
        changes, lambda text: re.sub(r'^bad value for option "[^"]*"', "bad value", text)
    )


@seeds("CPU-ERROR-006")
def conflicts_name_one_option(changes: Changes) -> None:
    """The option that comes second is the one that is refused."""
    _option_errors(
        changes,
        lambda text: re.sub(
            r"^static policy options (\S+) and \S+ can", r"static policy option \1 can", text
        ),
    )
