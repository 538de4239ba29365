"""The table of operations: the arguments, the result and the refusals of each.

The codec, the schemas, the server and the harness all read this table.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Mapping


class Operation(msgspec.Struct, frozen=True):
    """An operation and the types of its arguments, result and refusals."""

    name: str
    args: type[msgspec.Struct]
    result: type[msgspec.Struct]
    refusals: tuple[type[msgspec.Struct], ...] = ()
    needs_start: bool = True


_START = messages.StartRefused
_ADMISSION = messages.AdmissionRefused

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            Operation("hello", messages.HelloArgs, messages.Hello, needs_start=False),
            Operation("start", messages.StartArgs, messages.Started, (_START,), needs_start=False),
            Operation("admit", messages.AdmitArgs, messages.Admitted, (_ADMISSION,)),
            Operation("resize", messages.ResizeArgs, messages.Admitted, (_ADMISSION,)),
            Operation("remove", messages.RemoveArgs, messages.Done),
            Operation("end", messages.EndArgs, messages.Done),
            Operation("devices", messages.DevicesArgs, messages.Done),
            Operation("hints", messages.HintsArgs, messages.NodeHints),
            Operation("state", messages.NoArgs, messages.State),
            Operation("reconcile", messages.NoArgs, messages.Reconciled),
            Operation("merge", messages.MergeArgs, messages.Merged, (_START,), needs_start=False),
            Operation(
                "assign",
                messages.AssignArgs,
                messages.Assigned,
                (_START, _ADMISSION),
                needs_start=False,
            ),
            Operation("discover", messages.DiscoverArgs, MachineInfo, (_START,), needs_start=False),
            Operation("coverage", messages.NoArgs, messages.Coverage, needs_start=False),
        )
    }
)
"""Every operation by name. After a refused start, operations with `needs_start` return a fault."""
