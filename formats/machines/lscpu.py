"""The output of `lscpu`: the summary, ``--extended`` and ``--parse``, each also as JSON.

Tables number cores and sockets from 0 across the machine; the summary only counts them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from numaproof.formats.machines.description import CPU, Cache, Description, DescriptionError, Node
from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import CPUSet, ListFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_IN_ENGLISH = "save the output of `LC_ALL=C lscpu --extended`"
_WHOLE = "save the whole output of `lscpu`"
_EXTENDED = "save the output of `lscpu --extended`, which shows each CPU's core"

TABLE_HEAD = re.compile(r"^[ \t]*CPU(?:[ \t]+(?:[A-Z]+%?|L[0-9][\w:]*))+[ \t]*$", re.MULTILINE)
PARSE_HEAD = re.compile(r"^# *(?:CPU|cpu),\S*[ \t]*$", re.MULTILINE)
_DEFAULT_ROW = re.compile(r"[0-9]+(?:,[0-9]*){3},(?:,[0-9]*)*")
_DEFAULT_COLUMNS = ("CPU", "Core", "Socket", "Node", "", "L1d", "L1i", "L2", "L3")
_ENGLISH = re.compile(r"^\s*(?:On-line CPU\(s\) (?:list|mask):|Architecture:)", re.MULTILINE)
_COLON = "[:\uff1a]"  # in Chinese, a wide one
_ARCHITECTURES = "x86_64|i686|aarch64|ppc64le|ppc64|s390x|riscv64|armv7l"
_FOREIGN = re.compile(
    rf"^[ \t]*[^\s:][^\n:]{{0,40}}?{_COLON}\s*(?:{_ARCHITECTURES})\s*$", re.MULTILINE
)
SUMMARY_HEAD = re.compile(
    rf"{_FOREIGN.pattern}|^[ \t]*(?:CPU\(s\)|On-line CPU\(s\) (?:list|mask)):", re.MULTILINE
)
_MACHINE_WORDS = re.compile(rf"^[^\n]*\bCPU\b[^\n]*{_COLON}\s*\d+\s*$", re.MULTILINE)


def is_lscpu(text: str) -> bool:
    """Returns whether a text looks like the output of lscpu in any language."""
    first = text.lstrip().partition("\n")[0]
    return bool(
        (_ENGLISH.search(text) and re.search(r"^\s*(?:On-line )?CPU\(s\)", text, re.MULTILINE))
        or PARSE_HEAD.search(text)
        or (TABLE_HEAD.search(text) and re.search(r"^\s*0\s+\S", text, re.MULTILINE))
        or (_FOREIGN.match(first) and _MACHINE_WORDS.search(text))
        or _is_without_head(text)
    )


def _is_without_head(text: str) -> bool:
    """Whether a text is ``lscpu --parse`` without its comments, which name the columns."""
    lines = text.split()
    return bool(lines) and all(map(_DEFAULT_ROW.fullmatch, lines))


def is_lscpu_json(data: Any) -> bool:
    """Returns whether JSON is the output of ``lscpu --json``."""
    return isinstance(data, dict) and any(
        isinstance(data.get(key), list) for key in ("lscpu", "cpus", "caches")
    )


def read(text: str) -> Description:
    """Reads a text that `is_lscpu`.

    Raises:
        DescriptionError: it is incomplete, or in a language other than English.
    """
    if head := PARSE_HEAD.search(text):
        names = head[0].lstrip("# ").split(",")
        lines = {n: line.split(",") for n, line in _lines_after(head) if line[:1] != "#"}
        rows = _with_cache_columns(names, [*lines.values()])
        return _table("lscpu --parse", rows, [*lines])
    if head := TABLE_HEAD.search(text):
        names = head[0].split()
        lines = {n: line.split() for n, line in _lines_after(head)}
        return _table("lscpu --extended", _dicts(names, [*lines.values()]), [*lines])
    if _is_without_head(text):
        lines = {
            number: line.split(",")
            for number, line in enumerate(map(str.strip, text.splitlines()), 1)
            if line
        }
        rows = _with_cache_columns(_DEFAULT_COLUMNS, [*lines.values()])
        found = _table("lscpu --parse", rows, [*lines])
        note = "it has no head; assuming the usual columns, CPU,Core,Socket,Node"
        return replace(found, notes=(note, *found.notes))
    if not _ENGLISH.search(text):
        raise DescriptionError("lscpu in a language other than English", _IN_ENGLISH)
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return _summary([(name.strip(), value.strip()) for name, value in pairs])


def _lines_after(head: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Yields the lines below the head of a table that aren't empty, with their numbers."""
    first = head.string.count("\n", 0, head.end()) + 1
    for number, line in enumerate(head.string[head.end() :].splitlines(), first):
        if line.strip():
            yield number, line.strip()


def read_json(data: Any) -> Description:
    """Reads JSON that `is_lscpu_json`.

    Raises:
        DescriptionError: it is incomplete.
    """
    if "cpus" in data:
        rows = [
            {str(key): _cell(value) for key, value in row.items()}
            for row in data["cpus"]
            if isinstance(row, dict)
        ]
        return _table("lscpu --extended --json", rows)
    if "lscpu" in data:
        return _summary(list(_fields(data["lscpu"])))
    raise DescriptionError("`lscpu --caches`, which shows no CPUs", _EXTENDED)


_WORDS = {"True": "yes", "False": "no", "None": "-"}


def _cell(value: Any) -> str:
    return _WORDS.get(str(value), str(value))


def _fields(rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yields the fields of a summary; newer releases nest them."""
    for row in rows:
        if isinstance(row, dict):
            yield str(row.get("field", "")).rstrip(":"), str(row.get("data") or "")
            yield from _fields(row.get("children") or ())


def _dicts(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    return [dict(zip(names, row, strict=False)) for row in rows]


def _with_cache_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[dict[str, str]]:
    """Joins the columns of caches, which follow an empty column, as in an extended table."""
    if "" not in names:
        return _dicts(names, rows)
    at = names.index("")
    head = [*names[:at], ":".join(names[at + 1 :])]
    return _dicts(head, [[*row[:at], ":".join(row[at + 1 :])] for row in rows])


def _require_unique(kind: str, cpus: Sequence[CPU], lines: Sequence[int]) -> None:
    """Checks that no CPU is listed twice; `lines` are the CPUs' lines, if they are known.

    Raises:
        DescriptionError: one is.
    """
    seen: set[int] = set()
    for position, cpu in enumerate(cpus):
        if cpu.number in seen:
            line = lines[position] if lines else 0
            raise DescriptionError(f"{kind} lists CPU {cpu.number} again", _EXTENDED, line)
        seen.add(cpu.number)


def _table(kind: str, rows: Sequence[Mapping[str, str]], lines: Sequence[int] = ()) -> Description:
    """Reads a row for each CPU; names of columns are in upper case, in JSON in lower case."""
    table = [{name.upper(): value for name, value in row.items()} for row in rows]
    if not table or "CPU" not in table[0]:
        raise DescriptionError(f"{kind} without CPUs", _EXTENDED)
    words = {row.get("ONLINE", "yes").lower() for row in table}
    cpus = tuple(_cpu(row, kind, alone=len(words) == 1) for row in table)
    _require_unique(kind, cpus, lines)
    caches = tuple(_caches(table))
    without = [
        name
        for name, values in (
            ("CORE", [cpu.core for cpu in cpus if cpu.online]),
            ("SOCKET", [cpu.socket for cpu in cpus if cpu.online]),
            ("NODE", [cpu.node for cpu in cpus if cpu.online]),
        )
        if None in values and set(values) != {None}
    ]
    if without:
        raise DescriptionError(f"{kind} without the {without[0]} of some CPUs", _EXTENDED)
    # Without NUMA nodes, the usual columns lack theirs, or it has no numbers.
    shown = "NODE" in table[0] or table[0].keys() >= {"SOCKET", "CORE"}
    return Description(
        format=kind,
        cpus=cpus,
        nodes=tuple(Node(number=node) for node in sorted({cpu.node for cpu in cpus} - {None}))  # type: ignore[type-var, arg-type]
        if shown
        else None,
        caches=caches or None,
        notes=("NUMA nodes without CPUs aren't shown",) if "NODE" in table[0] else (),
    )


def _cpu(row: Mapping[str, str], kind: str, *, alone: bool) -> CPU:
    word = row.get("ONLINE", "yes").lower()
    number = _number(row.get("CPU"))
    core, socket = _number(row.get("CORE")), _number(row.get("SOCKET"))
    if number is None:
        raise DescriptionError(f"{kind} with the CPU {row.get('CPU')!r}", _EXTENDED)
    if word not in ("yes", "no", "y", "n", "-") and not alone:
        raise DescriptionError(f"{kind} in a language other than English", _IN_ENGLISH)
    online = word in ("yes", "y") or (word != "no" and alone and core is not None)
    return CPU(
        number=number, node=_number(row.get("NODE")), socket=socket, core=core, online=online
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,5}", text) else None


_CACHE = re.compile(r"L([1-9])([DI]?)")
_TYPES = {"D": "Data", "I": "Instruction", "": "Unified"}


def _caches(table: Sequence[Mapping[str, str]]) -> Iterator[Cache]:
    names = next((name for name in table[0] if _CACHE.match(name)), None)
    if names is None:
        return
    shared: dict[tuple[str, str], list[int]] = {}
    for row in table:
        for name, number in zip(names.split(":"), row.get(names, "").split(":"), strict=False):
            if number.isdecimal() and _CACHE.fullmatch(name):
                shared.setdefault((name, number), []).append(int(row["CPU"]))
    for (name, _), cpus in shared.items():
        found = _CACHE.fullmatch(name)
        assert found is not None
        yield Cache(level=int(found[1]), type=_TYPES[found[2]], cpus=tuple(cpus))


def _summary(pairs: Sequence[tuple[str, str]]) -> Description:
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    online = _cpus(fields, "On-line CPU(s) list") or _mask(fields, "On-line CPU(s) mask")
    if online is None:
        # Kernels without CPU hotplug have no such list.
        online = CPUSet(range(_number(fields.get("CPU(s)", [""])[0]) or 0))
    if not online:
        raise DescriptionError("lscpu without CPUs", _EXTENDED)
    offline = _cpus(fields, "Off-line CPU(s) list") or _mask(fields, "Off-line CPU(s) mask")
    nodes = {
        int(found[1]): _cpus(fields, name) or _mask(fields, name) or CPUSet()
        for name in fields
        if (found := re.fullmatch(r"NUMA node([0-9]{1,5}) CPU\(s\)", name))
    }
    _require_whole(fields, online, offline or CPUSet(), nodes)
    place = {cpu: node for node, cpus in nodes.items() for cpu in cpus}
    threads, sockets = _shape(fields, len(online))
    return Description(
        format="lscpu",
        architecture=fields.get("Architecture", [""])[0],
        cpus=(
            *(CPU(number=cpu, node=place.get(cpu)) for cpu in online),
            *(CPU(number=cpu, node=place.get(cpu), online=False) for cpu in offline or ()),
        ),
        nodes=tuple(Node(number=node) for node in nodes),
        threads_per_core=threads,
        sockets=sockets,
        l3_count=_l3_count(fields),
        notes=() if nodes else ("it shows no NUMA nodes: the kernel has none, or lines are lost",),
    )


def _require_whole(
    fields: Mapping[str, Sequence[str]],
    online: CPUSet,
    offline: CPUSet,
    nodes: Mapping[int, CPUSet],
) -> None:
    """Checks that no line is lost.

    Raises:
        DescriptionError: the lines contradict each other.
    """
    total = _number(fields.get("CPU(s)", [""])[0])
    if total is not None and total != len(online) + len(offline):
        message = f"lscpu counts {plural(total, 'CPU')} but lists {len(online) + len(offline)}"
        raise DescriptionError(message, _WHOLE)
    count = _number(fields.get("NUMA node(s)", [""])[0])
    if count is not None and count != len(nodes):
        lines = f"has {plural(len(nodes), 'line')} `NUMA nodeN CPU(s)`"
        raise DescriptionError(f"lscpu counts {plural(count, 'NUMA node')} but {lines}", _WHOLE)
    placed: set[int] = set()
    for node, cpus in nodes.items():
        for cpu in cpus:
            if cpu in placed:
                raise DescriptionError(f"lscpu lists CPU {cpu} in several NUMA nodes", _EXTENDED)
            if cpu not in online and cpu not in offline:
                raise DescriptionError(f"lscpu lists CPU {cpu} only in NUMA node {node}", _WHOLE)
            placed.add(cpu)
    lost = [cpu for cpu in online if cpu not in placed]
    if nodes and lost:
        raise DescriptionError(f"lscpu lists CPU {lost[0]} in no NUMA node", _WHOLE)


def _l3_count(fields: Mapping[str, Sequence[str]]) -> int | None:
    """The number of L3 caches, which releases since 2.37 show."""
    text = (fields.get("L3 cache") or fields.get("L3") or [""])[0]
    found = re.search(r"\(([0-9]{1,4}) instances?\)", text)
    return int(found[1]) if found else None


def _cpus(fields: Mapping[str, Sequence[str]], name: str) -> CPUSet | None:
    try:
        return CPUSet.parse(fields[name][0]) if name in fields else None
    except ListFormatError as error:
        raise DescriptionError(f"{name}: {error}", _EXTENDED) from None


def _mask(fields: Mapping[str, Sequence[str]], name: str) -> CPUSet | None:
    text = fields.get(name, [""])[0].replace(",", "")
    if not re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,2048}", text):
        return None
    return CPUSet.from_mask(int(text, 16))


def _shape(fields: Mapping[str, Sequence[str]], cpus: int) -> tuple[int | None, int | None]:
    """The threads per core and the number of sockets, each None if the text doesn't say.

    Machines with several kinds of cores have these fields once for each kind.

    Raises:
        DescriptionError: the numbers don't fit, because cores have different numbers of threads.
    """

    def only(name: str) -> int | None:
        values = fields.get(name, ())
        return _number(values[0]) if len(set(values)) == 1 else None

    threads, sockets = only("Thread(s) per core"), only("Socket(s)")
    cores = only("Core(s) per socket")
    if len(fields.get("Socket(s)", ())) > 1:
        return threads, None
    if "Thread(s) per core" not in fields and cores and sockets:
        threads, rest = divmod(cpus, cores * sockets)
        if rest or not threads:
            raise DescriptionError(
                f"{plural(sockets, 'socket')} of {plural(cores, 'core')} are not"
                f" {plural(cpus, 'CPU')}: the cores differ",
                _EXTENDED,
            )
    if threads and cores and sockets and threads * cores * sockets != cpus:
        if threads == 1:
            return threads, None
        raise DescriptionError(
            f"{plural(sockets, 'socket')} of {plural(cores, 'core')} of {threads} threads are not"
            f" {plural(cpus, 'CPU')}: the cores differ",
            _EXTENDED,
        )
    return threads or None, sockets or None
