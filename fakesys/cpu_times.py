"""`/proc/stat`: what the CPUs have done on a machine that has just started.

Documentation/filesystems/proc.rst of Linux describes its rows. Who counts CPUs here sees those that
are online.
"""

from numaproof.fakesys.machine import Machine

# Columns: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
_COLUMNS = 10
_IDLE = 3

# A minute, in hundredths of a second, in which nothing was done.
_UPTIME = 6000

# A moment at which it started: 2026-01-01 in UTC.
_STARTED = 1_767_225_600

# Kinds of deferred interrupts that kernels count, after their sum.
_SOFT_INTERRUPTS = 10


def machine_stat(machine: Machine) -> bytes:
    """The text of `/proc/stat`."""
    online = [cpu.number for cpu in machine.cpus if cpu.online]
    rows = [
        f"cpu  {_times(_UPTIME * len(online))}",  # the kernel puts two spaces here
        *(f"cpu{number} {_times(_UPTIME)}" for number in online),
        "intr 0",
        "ctxt 0",
        f"btime {_STARTED}",
        "processes 1",
        "procs_running 1",
        "procs_blocked 0",
        f"softirq {' '.join(['0'] * (1 + _SOFT_INTERRUPTS))}",
    ]
    return "".join(f"{row}\n" for row in rows).encode()


def _times(idle: int) -> str:
    return " ".join(str(idle if column == _IDLE else 0) for column in range(_COLUMNS))
