"""The CPU reservation: ``kubeReserved``, ``systemReserved`` and ``reservedSystemCPUs``.

(Kubernetes documentation, "Reserve Compute Resources for System Daemons".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.config.fields import ConfigError
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from numaproof.protocol.sets import CPUSet
    from numaproof.reference.config.configuration import Config

RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")


def reserved_cpus(
    config: Config, online: CPUSet, *, round_reservation: Callable[[Fraction], Fraction]
) -> Fraction:
    """Returns the total CPU reservation, in CPUs.

    `round_reservation` applies the
    release's rounding to an amount.

    Raises:
        ConfigError: a CPU reserved by id is not online, or an amount is invalid.

    Requirements: CPU-RESERVE-006, CPU-RESERVE-011, CPU-RESERVE-016.
    """
    if not config.named_cpus.issubset(online):
        raise ConfigError(
            f"reserved-cpus: {config.named_text} is not a subset of online-cpus: {online}"
        )
    kube, system = config.reservations()
    return round_reservation(cpus_of(kube, "kube")) + round_reservation(cpus_of(system, "system"))


class ReservationRounding:
    """Rounds each amount before the sum is rounded up: as documented, not at all."""

    def of(self, amount: Fraction) -> Fraction:
        return amount


def cpus_of(amounts: Mapping[str, str], whose: str) -> Fraction:
    """Returns the number of CPUs in the reserved `amounts`; `whose` is ``kube`` or ``system``.

    Raises:
        ConfigError: a resource cannot be reserved, or its amount is invalid.

    Requirements: CPU-CONFIG-011, CPU-CONFIG-012, CPU-CONFIG-013, CPU-CONFIG-015, MEM-CONFIG-010.
    """
    problem = f"--{whose}-reserved value failed to parse: "
    for resource, text in sorted(amounts.items()):
        if resource not in RESERVABLE:
            raise ConfigError(f'{problem}cannot reserve "{resource}" resource')
        try:
            amount = quantity.parse(text)
        except quantity.QuantityError as error:
            raise ConfigError(
                f'{problem}failed to parse quantity "{text}" for "{resource}" resource: {error}'
            ) from None
        if amount < 0:
            raise ConfigError(
                f'{problem}resource quantity for "{resource}" cannot be negative: {text}'
            )
    return quantity.parse(amounts.get("cpu", "0"))
