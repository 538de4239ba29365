"""What a snapshot's `/proc/cpuinfo` reveals: the architecture, and differences from sysfs."""

import re
from collections.abc import Sequence

from numaproof.fakesys.machine import Cpu
from numaproof.fakesys.profile import Architecture, CpuInfo
from numaproof.fakesys.ranges import Value, format_list, format_sequence
from numaproof.fakesys.snapshot import Snapshot

_SIGNS: tuple[tuple[str, Architecture], ...] = (
    (r"(?m)^vendor_id\s*: IBM/S390", "s390x"),
    (r"(?m)^arch\s*: IA-64", "ia64"),
    (r"(?m)^(timebase|cpu\s*: (POWER|Cell|PPC))", "ppc64"),
    (r"(?m)^model name\s*: ARMv[0-7]", "arm"),
    (r"(?m)^CPU implementer\s*:", "arm64"),
    (r"(?m)^hart\s*:", "riscv64"),
    (r"(?m)^flags\s*:.* lm( |$)", "x86_64"),
    (r"(?m)^flags\s*:", "i386"),
)
_ARM_FIELDS = ("CPU implementer", "CPU variant", "CPU part", "CPU revision")
_SHOWS_IDS = ("x86_64", "i386", "ia64", "s390x")


def cpuinfo_of(snapshot: Snapshot, cpus: Sequence[Cpu]) -> tuple[Architecture, CpuInfo]:
    """The architecture (x86_64 if unknown), and what `/proc/cpuinfo` shows."""
    text = snapshot.text("proc/cpuinfo") or ""
    architecture: Architecture = next(
        (name for sign, name in _SIGNS if re.search(sign, text)), "x86_64"
    )
    by_number = {cpu.number: cpu for cpu in cpus}
    processors = snapshot.processors
    numbers = [p.number for p in processors if p.number is not None]
    if len(set(numbers)) != len(processors):
        # Not a list of processors, so the profile has to keep the file's text.
        return architecture, CpuInfo()
    shown = [by_number.get(number, Cpu(number, None)) for number in sorted(numbers)]
    order = {p.number: p for p in processors}
    core_ids = [order[cpu.number].core_id for cpu in shown]
    physical_ids = [order[cpu.number].physical_id for cpu in shown]
    ids = architecture in _SHOWS_IDS
    online = [cpu.number for cpu in cpus if cpu.online]
    return architecture, CpuInfo(
        vendor=_field(text, "vendor_id") or _field(text, "vendor"),
        model=_field(text, "model name") or _field(text, "cpu"),
        fields={key: value for key in _ARM_FIELDS if (value := _field(text, key))},
        cpus=None if sorted(numbers) == online else format_list(numbers),
        core_ids=_said(core_ids, [cpu.core_id for cpu in shown]) if ids else None,
        physical_ids=_said(physical_ids, [cpu.socket for cpu in shown]) if ids else None,
    )


def _field(text: str, key: str) -> str | None:
    match = re.search(rf"(?m)^{re.escape(key)}[ \t]*:[ \t]*(\S[^\n\0]{{0,200}}?)[ \t]*$", text)
    return match[1] if match else None


def _said(values: Sequence[Value], sysfs: Sequence[Value]) -> str | None:
    """The sequence, unless it equals sysfs."""
    # Negative ids cannot be shown, and are read as no id.
    if list(values) == [None if value is None or value < 0 else value for value in sysfs]:
        return None
    return "none" if set(values) == {None} else format_sequence(values)
