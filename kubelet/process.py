"""One run of the kubelet: its command line, its log, and how it ends."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from pathlib import Path

_KLOG = re.compile(r"([IWEF])\d{4} [\d:.]+ +\d+ ([\w.-]+):(\d+)\] (.*)")
_VALUE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\{[^=]*?\}(?= |$)|\[[^=]*?\](?= |$)|\S+)')
_KEPT_LINES = 4000
_SLOW = 10.0
"""Seconds after which it is said what somebody waits for."""


class KubeletExitedError(Exception):
    """The kubelet ended; the message has its last words, `code` its exit code."""

    def __init__(self, log: str, code: int) -> None:
        super().__init__(log)
        self.code = code


@dataclass(frozen=True)
class LogLine:
    """A line of the log: severity, source file, message and key-value pairs as written."""

    severity: str
    source: str
    message: str
    values: dict[str, str]


def parse_line(line: str) -> LogLine | None:
    """A line of klog; None for any other."""
    match = _KLOG.match(line)
    if match is None:
        return None
    severity, source, _, text = match.groups()
    message, values = text, {}
    if text.startswith('"'):
        quoted = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if quoted:
            message = _unquote(quoted[0])
            values = {name: _unquote(value) for name, value in _VALUE.findall(text[quoted.end() :])}
    return LogLine(severity, source, message, values)


def _unquote(value: str) -> str:
    """A value without Go's quotes, which are JSON's but for escapes of bytes that aren't text."""
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]


@dataclass
class KubeletProcess:
    """A running kubelet; `on_line` gets each line of its log, also those of no klog."""

    process: asyncio.subprocess.Process
    on_line: Callable[[str], None]
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        folders: tuple[Path, Path, Path],
        on_line: Callable[[str], None],
    ) -> KubeletProcess:
        """Starts the kubelet on a tree, a state directory and a folder for logs."""
        launcher = [sys.executable, "-m", "numaproof.kubelet.launch", *map(str, folders), *command]
        process = await asyncio.create_subprocess_exec(
            *launcher,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=1 << 22,
        )
        made = cls(process, on_line)
        made._reader = asyncio.create_task(made._read())
        return made

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            self.tail.append(text)
            self.on_line(text)

    async def wait(self) -> int:
        """Waits for the end, until its whole log is read; the exit code."""
        code = await self.process.wait()
        if self._reader:
            await self._reader
        return code

    async def until(self, ready: Callable[[], object], change: asyncio.Event, what: str) -> None:
        """Waits until something is so; each change is a reason to look again.

        Args:
            ready: whether it is so.
            change: set when something has happened.
            what: what the kubelet has done then.

        Raises:
            KubeletExitedError: the kubelet ended first.
        """
        ended = asyncio.create_task(self.wait())
        is_slow = False
        try:
            while not ready():
                change.clear()
                changed = asyncio.create_task(change.wait())
                done, _ = await asyncio.wait(
                    {ended, changed},
                    return_when=asyncio.FIRST_COMPLETED,
                    timeout=None if is_slow else _SLOW,
                )
                if not done:
                    is_slow = True
                    sys.stderr.write(f"waiting until the kubelet has {what}\n")
                changed.cancel()
                if ended in done and not ready():
                    raise KubeletExitedError("\n".join(self.tail), ended.result())
        finally:
            ended.cancel()

    async def end(self, number: signal.Signals) -> None:
        """Sends it a signal that ends it, and waits for its end."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.wait()
