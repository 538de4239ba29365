"""Texts and files that describe a machine, but not enough of it or not for programs.

Each is refused by its name, with the way to get one that says more.
"""

from __future__ import annotations

import re
from typing import Any

from numaproof.inputs.documents import value_at
from numaproof.reference.config.fields import DECODED

_CAPTURE = "run `numaproof profile capture / --out machine.yaml` on the machine"
_LSCPU = f"save the output of `LC_ALL=C lscpu --extended`, or {_CAPTURE}"

_BYTES = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"RIFF", "a picture (WebP)"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
)
_COMPRESSED = ((b"\x1f\x8b", ".tar.gz or .tgz"), (b"\xfd7zXZ", ".tar.xz"), (b"BZh", ".tar.bz2"))

_DOCUMENT = re.compile(r"^\s*[{\[]|^[\"']?[\w.-]+[\"']?\s*:", re.MULTILINE)
_TEXTS = tuple(
    (re.compile(pattern, re.MULTILINE), name, fix)
    for pattern, name, fix in (
        (
            r"\Aprocessor\s*:\s*[0-9]+$",
            "/proc/cpuinfo, which shows neither NUMA nodes nor memory",
            _LSCPU,
        ),
        (r"\AMemTotal:\s", "/proc/meminfo, which shows no CPUs", _LSCPU),
        (
            r"^(?:# dmidecode|SMBIOS [0-9.]+ present|Handle 0x[0-9A-F]+, DMI type)",
            "the output of dmidecode, which shows the slots of the board",
            _LSCPU,
        ),
        (
            r"^CPU(?: [0-9]+)?:\n\s+vendor_id = |^\s*0x[0-9a-f]{8} 0x[0-9a-f]{2}: eax=",
            "the output of cpuid, which shows single CPUs",
            _LSCPU,
        ),
        (
            r"^(?:phys)?cpubind: ",
            "the output of `numactl --show`, which shows a process",
            "save the output of `numactl --hardware`",
        ),
        (
            r"^No NUMA support available",
            "the output of numactl on a kernel without NUMA",
            _LSCPU,
        ),
        (
            r"^(?:numa_hit\s|Per-node )",
            "the output of numastat, which shows no CPUs",
            "save the output of `numactl --hardware`",
        ),
        (
            r"^\s*(?:Machine|Package|NUMANode) (?:L#|P#|\()",
            "lstopo's drawing as text",
            "save the output of `lstopo --of xml`",
        ),
        (
            r"\A\s*<(?:\?xml[^>]*>\s*<)?(?:svg|!DOCTYPE svg)",
            "a drawing (SVG)",
            "save the output of `lstopo --of xml`",
        ),
        (r"^<(?:capabilities|domain|node|list)\b", "XML of libvirt or lshw", _LSCPU),
        (r"^\s*\*-(?:core|cpu|memory)\b", "the output of lshw", _LSCPU),
        (r"^CPU name:|^Hardware Thread Topology", "the output of likwid-topology", _LSCPU),
        (r"^System:\s.*(?:Kernel|Host):", "the output of inxi", _LSCPU),
        (
            r"^Name: +\S+\n(?:Roles|Labels|Namespace):",
            "the output of `kubectl describe`",
            "save the output of `kubectl get ... -o yaml`",
        ),
        (
            r"\ANAME +STATUS +ROLES +",
            "the table of `kubectl get nodes`",
            "save the output of `kubectl get node NAME -o yaml`",
        ),
        (
            r"^(?:=+ Processor|Host Name: |Windows )",
            "a description of a Windows machine",
            "kubelets on Windows have none of the managers that numaproof simulates",
        ),
    )
)


def refusal(content: bytes) -> tuple[str, str] | None:
    """Returns a useless file's name, and how to get a useful one; None if it is unknown."""
    for magic, name in _BYTES:
        if content.startswith(magic):
            return name, _LSCPU
    for magic, suffix in _COMPRESSED:
        if content.startswith(magic):
            return (
                "a compressed file",
                f"rename it to {suffix} if it is a tar archive, or unpack it",
            )
    text = content.decode("utf-8", "replace")
    if not text.strip():
        return "empty", _LSCPU
    found = next(((name, fix) for form, name, fix in _TEXTS if form.search(text)), None)
    if found is None and text.strip() and not _DOCUMENT.search(text):
        return "in none of the formats that describe a machine", _LSCPU
    return found


_NAME = re.compile(r"^[\"']?([\w.-]+)[\"']?\s*:", re.MULTILINE)
_KIND = re.compile(r"^kind: *[\"']?(\w+)", re.MULTILINE)
_OBJECTS = "expected a Node, a NodeResourceTopology or a Numatopology"
_OPTIONS = {
    "KubeletConfiguration": "name it with --config",
    "Pod": "name it as a file of pods",
    "PodList": "name it as a file of pods",
}


def document_refusal(text: str, data: Any) -> tuple[str, str] | None:
    """Returns the name and use of YAML or JSON that describes no machine; None if it is unknown.

    Args:
        text: the text.
        data: its contents if it could be parsed; otherwise None.
    """
    is_read = isinstance(data, dict)
    names = set(data) if is_read else set(_NAME.findall(text))
    kind = str(data["kind"]) if is_read and "kind" in data else ""
    if not kind and (found := _KIND.search(text)):
        kind = found[1]
    first = value_at(data, ("items", 0, "kind"))
    if kind == "List" and first:
        return f"a list of objects of kind {first}", _OPTIONS.get(str(first), _OBJECTS)
    if kind:
        fix = _OPTIONS.get(kind, _OBJECTS)
        return f"an object of kind {kind}", fix
    if "num_cores" in names:
        return "a MachineInfo without topology", "use the whole output"
    if names & DECODED.keys():
        return "a kubelet's configuration", _OPTIONS["KubeletConfiguration"]
    if "policyName" in names:
        return "a kubelet's state file", "name its directory with --state"
    return None
