"""Violators of what the CPU Manager's errors say, and of when they come."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.cpu import policy as cpu_policies
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.errors import StartError
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
def other_cpus_of_the_same_number_are_taken(changes: Changes) -> None:
    """The machine is the same one if it has as many CPUs."""

    def change(state: Any, cpus: int, own: int) -> Any:
        if cpus.bit_count() != own.bit_count():
            return state
        return dataclasses.replace(state, shared=state.shared & cpus | cpus & ~own)

    _restoring(changes, change)


# After a refused start


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

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        try:
            return original(self, state, pod, *rest)
        except NotEnoughCPUsError:
            count = pod.exclusive_cpus(rest[0])
            raise NotEnoughCPUsError(count, state.shared.bit_count()) from None

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-ERROR-004")
def shortage_states_the_request_of_the_pod(changes: Changes) -> None:
    """It is the pod that is rejected, so its sum is stated."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        try:
            return original(self, state, pod, *rest)
        except NotEnoughCPUsError:
            free = self.available(state) | state.reuse.of(pod.uid)
            total = sum(pod.exclusive_cpus(container) for container in pod.containers)
            raise NotEnoughCPUsError(total, free.bit_count()) from None

    changes.around(StaticCPUPolicy, "allocate", allocate)


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
def bad_values_come_without_their_option(changes: Changes) -> None:
    """The value is quoted, and its option is not."""
    _option_errors(
        changes, lambda text: re.sub(r'^bad value for option "[^"]*"', "bad value", text)
    )
