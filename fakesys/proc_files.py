"""`/proc/cpuinfo` in the format of each architecture, and `/proc/stat`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from numaproof.fakesys.fields import read
from numaproof.fakesys.machine import MAX_CPUS, Cpu, Machine, ProfileError
from numaproof.fakesys.profile import CpuInfo, Profile
from numaproof.fakesys.ranges import Value, parse_list, parse_sequence
from numaproof.inputs.plurals import plural

_X86_FLAGS = "fpu tsc msr pae cx8 apic cmov pat mmx fxsr sse sse2 ht"


@dataclass(frozen=True, slots=True)
class _Processor:
    """A processor in `/proc/cpuinfo`: the CPU, and the ids shown for it."""

    cpu: Cpu
    core_id: Value
    physical_id: Value
    siblings: int
    cores: int


_Rows = list[tuple[str, object]]
_Form = Callable[[CpuInfo, Sequence[_Processor]], str]


def cpuinfo(profile: Profile, machine: Machine) -> bytes:
    """Returns the text of `/proc/cpuinfo`.

    Raises:
        ProfileError: the list of processors or of ids is invalid, or the number of ids is wrong.
    """
    info = profile.cpuinfo or CpuInfo()
    return _FORMS[profile.architecture](info, _processors(info, machine)).encode()


def _processors(info: CpuInfo, machine: Machine) -> list[_Processor]:
    shown = _cpuinfo_cpus(info, machine)
    core_ids = _ids("core_ids", info.core_ids, [cpu.core_id for cpu in shown])
    physical_ids = _ids("physical_ids", info.physical_ids, [cpu.socket for cpu in shown])
    siblings: dict[int | None, list[tuple[int, ...]]] = {}
    for cpu in shown:
        siblings.setdefault(cpu.socket, []).append(cpu.core)
    counts = {socket: (len(cores), len(set(cores))) for socket, cores in siblings.items()}
    return [
        _Processor(cpu, core_id, physical_id, *counts[cpu.socket])
        for cpu, core_id, physical_id in zip(shown, core_ids, physical_ids, strict=True)
    ]


def _cpuinfo_cpus(info: CpuInfo, machine: Machine) -> list[Cpu]:
    if info.cpus is None:
        return [cpu for cpu in machine.cpus if cpu.online]
    numbers = read(("cpuinfo", "cpus"), parse_list, str(info.cpus), MAX_CPUS)
    # The file can list processors without a directory in sysfs.
    return [machine.by_number.get(number, Cpu(number, None)) for number in numbers]


def _ids(field: str, text: str | int | None, ids: list[Value]) -> Sequence[Value]:
    if text is None:
        return ids
    values = read(("cpuinfo", field), parse_sequence, text, MAX_CPUS)
    if len(values) == 1:
        return values * len(ids)
    if len(values) != len(ids):
        message = f"expected {plural(len(ids), 'value')}, got {len(values)}"
        raise ProfileError(("cpuinfo", field), message)
    return values


def _blocks(
    rows_of: Callable[[CpuInfo, _Processor], _Rows], pad: int = 0
) -> Callable[[CpuInfo, Sequence[_Processor]], str]:
    """Creates a format with a block of ``key : value`` lines for each processor and a trailer."""

    def text(info: CpuInfo, processors: Sequence[_Processor]) -> str:
        blocks = [
            _lines(_with_fields(rows_of(info, processor), info.fields), pad)
            for processor in processors
        ]
        if info.trailer:
            blocks.append(_lines(list(info.trailer.items()), pad))
        return "".join(f"{block}\n" for block in blocks)

    return text


def _with_fields(rows: _Rows, fields: Mapping[str, str]) -> _Rows:
    """Puts a profile's lines in the place of the rows with the same key, or at the end."""
    keys = {key for key, _ in rows}
    replaced = [(key, fields.get(key, value)) for key, value in rows]
    return replaced + [(key, value) for key, value in fields.items() if key not in keys]


def _lines(rows: Sequence[tuple[str, object]], pad: int) -> str:
    """Formats ``key<tabs>: value`` as on x86, Arm and Power, or pads keys with spaces."""
    if pad:
        return "".join(f"{key:<{pad}}: {value}\n" for key, value in rows)
    return "".join(f"{key}{chr(9) * (2 - len(key) // 8)}: {value}\n" for key, value in rows)


def _optional(rows: Sequence[tuple[str, object | None]]) -> _Rows:
    return [(key, value) for key, value in rows if value is not None]


def _x86(info: CpuInfo, processor: _Processor) -> _Rows:
    return _optional(
        (
            ("processor", processor.cpu.number),
            ("vendor_id", info.vendor or "GenuineIntel"),
            ("cpu family", 6),
            ("model name", info.model or "Virtual CPU"),
            ("cpu MHz", None if info.mhz is None else f"{info.mhz}.000"),
            ("physical id", processor.physical_id),
            ("siblings", processor.siblings),
            ("core id", processor.core_id),
            ("cpu cores", processor.cores),
            ("flags", _X86_FLAGS),
        )
    )


def _x86_64(info: CpuInfo, processor: _Processor) -> _Rows:
    return [
        (key, f"{value} lm" if key == "flags" else value) for key, value in _x86(info, processor)
    ]


def _arm(_: CpuInfo, processor: _Processor) -> _Rows:
    defaults = {
        "BogoMIPS": "50.00",
        "Features": "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics cpuid",
        "CPU implementer": "0x41",
        "CPU architecture": "8",
        "CPU variant": "0x0",
        "CPU part": "0xd0c",
        "CPU revision": "1",
    }
    return [("processor", processor.cpu.number), *defaults.items()]


_ARM32 = {"Features": "half thumb fastmult vfp edsp neon vfpv3 tls", "CPU architecture": "7"}


def _arm32(info: CpuInfo, processor: _Processor) -> _Rows:
    first, *others = _with_fields(_arm(info, processor), _ARM32)
    return [first, *_optional([("model name", info.model)]), *others]


def _power(info: CpuInfo, processor: _Processor) -> _Rows:
    return [
        ("processor", processor.cpu.number),
        ("cpu", info.model or "POWER9, altivec supported"),
        ("clock", f"{info.mhz or 2300}.000000MHz"),
    ]


def _itanium(info: CpuInfo, processor: _Processor) -> _Rows:
    return _optional(
        (
            ("processor", processor.cpu.number),
            ("vendor", info.vendor or "GenuineIntel"),
            ("arch", "IA-64"),
            ("cpu MHz", None if info.mhz is None else f"{info.mhz}.000000"),
            ("siblings", processor.siblings),
            ("physical id", processor.physical_id),
            ("core id", processor.core_id),
        )
    )


def _plain(_: CpuInfo, processor: _Processor) -> _Rows:
    return [("processor", processor.cpu.number)]


def _s390x(info: CpuInfo, processors: Sequence[_Processor]) -> str:
    """Formats common fields, a line for each processor, then a block for each processor."""
    head: _Rows = [
        ("vendor_id", info.vendor or "IBM/S390"),
        ("# processors", len(processors)),
        *info.fields.items(),
    ]
    summary = "".join(
        f"processor {processor.cpu.number}: version = 00,  identification = 000000,  "
        f"machine = {info.model or '8561'}\n"
        for processor in processors
    )
    blocks = "".join(
        "\n"
        + _lines(
            _optional(
                (
                    ("cpu number", processor.cpu.number),
                    ("physical id", processor.physical_id),
                    ("core id", processor.core_id),
                )
            ),
            pad=16,
        )
        for processor in processors
    )
    return _lines(head, pad=16) + summary + blocks


_FORMS: Mapping[str, _Form] = {
    "x86_64": _blocks(_x86_64),
    "i386": _blocks(_x86),
    "arm64": _blocks(_arm),
    "arm": _blocks(_arm32),
    "ppc64": _blocks(_power),
    "s390x": _s390x,
    "ia64": _blocks(_itanium, pad=11),
    "riscv64": _blocks(_plain),
    "loongarch64": _blocks(_plain),
    "mips64": _blocks(_plain),
}


# Columns: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
_COLUMNS = 10
_IDLE = 3

# One minute of idle time, in hundredths of a second.
_UPTIME = 6000

# The time of the start: 2026-01-01 in UTC.
_STARTED = 1_767_225_600

# The number of counters for deferred interrupts, which follow their sum.
_SOFT_INTERRUPTS = 10


def machine_stat(machine: Machine) -> bytes:
    """Returns the text of `/proc/stat`.

    It shows the activity of the online CPUs of a machine that has just started (Linux,
    Documentation/filesystems/proc.rst).
    """
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
