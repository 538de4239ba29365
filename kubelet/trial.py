"""Tries a kubelet: one pod on a simulated laptop, from the start to the removal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.execution import kubelet_command
from numaproof.conformance.execution.implementation import ImplementationFailure, handshake
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages
from numaproof.protocol.diagnosis import HostCheck

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.kubelet.binary import Kubelet

_MACHINE = "laptop-4c8t"
_CONFIG = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
_RESOURCES = {"cpu": "2", "memory": "64Mi"}
_POD = {
    "metadata": {"name": "trial", "uid": "uid-trial", "namespace": "default"},
    "spec": {"containers": [{"name": "app", "resources": {"limits": _RESOURCES}}]},
}
_FIX = "give it more time with --timeout, or add what it needs with --kubelet-arg"


def trial(
    kubelet: Kubelet, arguments: Sequence[str], timeout: float, harness: str, scratch: Path
) -> HostCheck:
    """Starts the kubelet on a machine, and has it admit and remove a pod.

    Args:
        kubelet: the kubelet.
        arguments: further arguments of the kubelet.
        timeout: the time limit for each call in seconds.
        harness: the harness's name in `hello`.
        scratch: an empty folder.
    """
    tree, state = scratch / "tree", scratch / "state"
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(_MACHINE)), tree)
    state.mkdir()
    command = kubelet_command.command(str(kubelet.path), arguments, kubelet.release)
    program = Subprocess(command, timeout)
    began = time.monotonic()
    try:
        handshake(program, harness)
        start = messages.StartArgs(_CONFIG, str(state), kubelet.release, root=str(tree))
        for operation, args in (
            ("start", start),
            ("admit", messages.AdmitArgs(_POD)),
            ("remove", messages.RemoveArgs("uid-trial")),
        ):
            answer = program.call(operation, args)
            if not isinstance(answer, messages.Started | messages.Admitted | messages.Done):
                return HostCheck("trial", f"{operation}: {_what(answer)}", _FIX)
    except ImplementationFailure as failure:
        return HostCheck("trial", f"{failure}\n{failure.stderr}".strip(), _FIX)
    finally:
        program.close()
    taken = time.monotonic() - began
    return HostCheck("trial", f"started on {_MACHINE}, admitted and removed a pod in {taken:.1f} s")


def _what(answer: messages.Answer) -> str:
    match answer:
        case messages.StartRefused() | messages.AdmissionRefused():
            return f"refused: {answer.message}"
        case messages.Fault():
            return answer.message
        case messages.Unsupported():
            return f"unsupported: {answer.what}"
        case _:
            return "an unexpected answer"
