"""Violators of CFS quota: whom it limits, and whom it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config.quota import Quotas
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-quota")


def _where(changes: Changes, concerned: Callable[..., bool], *, limited: bool) -> None:
    """Limits whom it concerns, or does not; `concerned` is given quotas, pod, container, CPUs."""

    def limits(original: Any, self: Any, pod: Any, container: Any, cpus: Any) -> bool:
        if concerned(self, pod, container, cpus):
            return limited
        answer: bool = original(self, pod, container, cpus)
        return answer

    changes.around(Quotas, "limits", limits)


def _has_limit(pod: Any, container: Any) -> bool:
    return bool(pod.cpu_limit(container))


# Limits are enforced


@seeds("CPU-NONE-003")
def quota_limits_guaranteed_pods_alone(changes: Changes) -> None:
    """A plausible author thinks that only Guaranteed pods have limits to enforce."""
    _where(changes, lambda _, pod, *__: pod.qos != "Guaranteed", limited=False)


@seeds("CPU-NONE-003")
def quota_limits_burstable_pods_alone(changes: Changes) -> None:
    """A plausible author thinks that Guaranteed pods never want more than they request."""
    _where(
        changes,
        lambda _, pod, __, cpus: pod.qos == "Guaranteed" and not cpus,
        limited=False,
    )


@seeds("CPU-NONE-003")
def quota_passes_init_containers_over(changes: Changes) -> None:
    """A plausible author limits what runs for long."""
    _where(changes, lambda _, __, container, ___: container.passes, limited=False)


@seeds("CPU-NONE-003")
def quota_passes_sidecars_over(changes: Changes) -> None:
    """A plausible author forgets the init containers that stay."""
    _where(changes, lambda _, __, container, ___: container.sidecar, limited=False)


@seeds("CPU-NONE-003")
def quota_limits_whole_cpus_alone(changes: Changes) -> None:
    """A plausible author counts limits in CPUs."""
    _where(
        changes,
        lambda _, pod, container, __: pod.cpu_limit(container).denominator != 1,
        limited=False,
    )


@seeds("CPU-NONE-003")
def quota_limits_to_requests(changes: Changes) -> None:
    """A plausible author limits a container without a limit to what it requests."""
    _where(
        changes,
        lambda self, pod, container, _: (
            self.enforced
            and not _has_limit(pod, container)
            and bool(quantity.parse(container.requests.get("cpu", 0)))
        ),
        limited=True,
    )


@seeds("CPU-NONE-003")
def quota_cannot_be_switched_off(changes: Changes) -> None:
    """A plausible author does not read cpuCFSQuota."""
    _where(
        changes,
        lambda self, pod, container, _: not self.enforced and _has_limit(pod, container),
        limited=True,
    )


@seeds("CPU-NONE-003")
def quota_comes_with_the_static_policy(changes: Changes) -> None:
    """A plausible author sets quotas where CPUs are managed."""
    static: list[bool] = []

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        node = original(args, release, discover)
        static[:] = [node.setup.cpu is not None]
        return node

    changes.around(startup, "start", start)
    _where(changes, lambda *_: static == [False], limited=False)


# Exclusive CPUs are spared


@seeds("CPU-STATIC-020")
def quota_limits_exclusive_cpus_too(changes: Changes) -> None:
    """A plausible author limits whoever has a limit."""
    _where(
        changes,
        lambda self, pod, container, cpus: (
            self.enforced and bool(cpus) and _has_limit(pod, container)
        ),
        limited=True,
    )


@seeds("CPU-STATIC-020")
def quota_limits_init_containers_with_exclusive_cpus(changes: Changes) -> None:
    """A plausible author spares app containers."""
    _where(
        changes,
        lambda self, _, container, cpus: self.enforced and bool(cpus) and container.passes,
        limited=True,
    )


@seeds("CPU-STATIC-020")
def quota_limits_sidecars_with_exclusive_cpus(changes: Changes) -> None:
    """A plausible author counts sidecars among the helpers that share."""
    _where(
        changes,
        lambda self, _, container, cpus: self.enforced and bool(cpus) and container.sidecar,
        limited=True,
    )


@seeds("CPU-STATIC-020")
def quota_comes_back_with_a_restart(changes: Changes) -> None:
    """A plausible author spares containers as they get their CPUs, and not after a restart."""
    given: set[tuple[str, str]] = set()

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        given.clear()
        node = original(args, release, discover)
        given.update((pod.uid, one.name) for pod in node.pods.values() for one in pod.containers)
        return node

    changes.around(startup, "start", start)
    _where(
        changes,
        lambda self, pod, container, cpus: (
            self.enforced and bool(cpus) and (pod.uid, container.name) in given
        ),
        limited=True,
    )


# The gate


@seeds("CPU-GATE-012")
def quota_gate_is_off_by_default(changes: Changes) -> None:
    """A plausible author takes a beta gate for an alpha one."""
    _where(
        changes,
        lambda self, pod, container, cpus: (
            self.enforced and bool(cpus) and _has_limit(pod, container)
        ),
        limited=True,
    )


@seeds("CPU-GATE-012", kubernetes="1.36")
def quota_gate_is_not_read(changes: Changes) -> None:
    """A plausible author spares exclusive CPUs, whatever the gate says."""
    _where(changes, lambda _, __, ___, cpus: bool(cpus), limited=False)


@seeds("CPU-GATE-012")
def quota_gate_frees_whole_pods(changes: Changes) -> None:
    """A plausible author frees every container of a Guaranteed pod."""
    _where(
        changes,
        lambda self, pod, *_: self.spares_exclusive and pod.qos == "Guaranteed",
        limited=False,
    )
