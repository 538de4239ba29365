"""Violators of the requirements of CPUs and restarts: reservations, refused starts, whole pods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.errors import AdmissionError, StartError
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-init")


# CPU-RESTART-007: another reservation


def _noted(changes: Changes, instead: Callable[[Any, Any, int], Any]) -> None:
    """Notes the reservation beside the checkpoint, and asks `instead` if it is another one.

    That makes the setup to start with, of the setup, the CPUs in use and the earlier reservation.
    """

    def start_cpus(
        original: Any, setup: Any, release: Any, state_dir: Path, present: tuple[Pod, ...]
    ) -> Any:
        if setup.cpu is None:
            return original(setup, release, state_dir, present)
        note = Path(state_dir) / "reserved_cpus"
        earlier = int(note.read_text()) if note.exists() else setup.cpu.reserved
        manager = original(setup, release, state_dir, present)
        if earlier != setup.cpu.reserved:
            made = instead(setup, manager, earlier)
            manager = original(made, release, state_dir, present)
        note.write_text(str(earlier))
        return manager

    changes.around(startup, "start_cpus", start_cpus)


@seeds("CPU-RESTART-007")
def another_reservation_is_not_kept_free(changes: Changes) -> None:
    """Starts with the new reservation, and goes on handing out CPUs by the old one."""
    _noted(
        changes,
        lambda setup, manager, earlier: replace(setup, cpu=replace(setup.cpu, reserved=earlier)),
    )


# CPU-RESTART-008: a refused start


def _refused(changes: Changes, spoil: Callable[[Path, str], None]) -> None:
    """Does something to the checkpoint when the CPU Manager does not start."""

    def start_cpus(original: Any, setup: Any, release: Any, state_dir: Path, present: Any) -> Any:
        try:
            return original(setup, release, state_dir, present)
        except StartError as error:
            spoil(Path(state_dir) / cpu_checkpoint.FILE_NAME, str(error))
            raise

    changes.around(startup, "start_cpus", start_cpus)


@seeds("CPU-RESTART-008")
def a_checkpoint_that_does_not_fit_is_moved_aside(changes: Changes) -> None:
    """Saves a checkpoint of another machine or reservation under another name."""

    def move(file: Path, why: str) -> None:
        if "could not restore state" not in why and file.exists():
            file.rename(f"{file}.refused")

    _refused(changes, move)


@seeds("CPU-RESTART-008")
def a_start_with_a_bad_configuration_removes_the_checkpoint(changes: Changes) -> None:
    """Clears the state directory before it reads the configuration, and fills it later."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        try:
            return original(args, *rest)
        except StartError as error:
            if error.stage in ("config", "topology"):
                (Path(args.state_dir) / cpu_checkpoint.FILE_NAME).unlink(missing_ok=True)
            raise

    changes.around(startup, "start", start)


@seeds("CPU-RESTART-008")
def cpus_are_reclaimed_before_the_memory_manager_starts(changes: Changes) -> None:
    """Writes the CPU Manager's file anew, and only then finds that memory is refused."""

    def start_cpus(
        original: Any, setup: Any, release: Any, state_dir: Path, present: tuple[Pod, ...]
    ) -> Any:
        manager = original(setup, release, state_dir, present)
        manager.remove_stale_state({pod.uid: pod for pod in present}, "reconcile")
        manager.save()
        return manager

    changes.around(startup, "start_cpus", start_cpus)


# CPU-RESTART-009: pods that have CPUs as a whole


@seeds("CPU-RESTART-009")
def pods_with_init_containers_take_pod_level_cpus_anew(changes: Changes) -> None:
    """Takes a pod with init containers for one that has not started yet."""
    changes.around(
        StaticCPUPolicy,
        "keeps",
        lambda original, self, state, pod: (
            original(self, state, pod) and not any(one.init for one in pod.containers)
        ),
    )


@seeds("CPU-RESTART-009")
def a_pod_admitted_again_has_pod_level_cpus_twice(changes: Changes) -> None:
    """Adds what it allocates to what the pod has."""

    def allocate_pod(original: Any, self: Any, state: Any, pod: Pod, at: Any) -> Any:
        own = state.pods.get(pod.uid, 0)
        if not own:
            return original(self, state, pod, at)
        rest = {uid: cpus for uid, cpus in state.pods.items() if uid != pod.uid}
        bare = replace(state, pods=rest)
        try:
            more = original(self, bare, pod, at)
        except (NotEnoughCPUsError, AdmissionError):
            return state
        return more.assign_pod(pod.uid, own | more.pods.get(pod.uid, 0))

    changes.around(StaticCPUPolicy, "allocate_pod", allocate_pod)
