"""Tries a kubelet on a simulated laptop, before it is checked."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.execution import kubelet_command
from numaproof.conformance.execution.implementation import ImplementationFailure, handshake
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages
from numaproof.protocol.diagnosis import HostCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.kubelet.binary import Kubelet

_MACHINE = "laptop-4c8t"
_CONFIG = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
_RESOURCES = {"cpu": "2", "memory": "64Mi"}
_POD = {
    "metadata": {"name": "trial", "uid": "uid-trial", "namespace": "default"},
    "spec": {"containers": [{"name": "app", "resources": {"limits": _RESOURCES}}]},
}
_CALLS = (("admit", messages.AdmitArgs(_POD)), ("remove", messages.RemoveArgs("uid-trial")))


class TrialError(Exception):
    """A kubelet failed its trial: what it did, its log if there is one, and what to do.

    Attributes:
        log: the end of the log; usually empty.
        fix: what to do.
    """

    def __init__(self, what: str, fix: str, log: str = "") -> None:
        super().__init__(what)
        self.fix = fix
        self.log = log


@dataclass(frozen=True)
class Trial:
    """A trial of a kubelet.

    Attributes:
        kubelet: the kubelet.
        arguments: further arguments of the kubelet.
        timeout: the time limit for each call in seconds.
        harness: the harness's name in `hello`.
    """

    kubelet: Kubelet
    arguments: Sequence[str]
    timeout: float
    harness: str

    def check(self, scratch: Path) -> HostCheck:
        """Starts it with a policy, and has it admit and remove a pod; `scratch` is empty."""
        began = time.monotonic()
        try:
            self._run(scratch, _CONFIG, _CALLS)
        except TrialError as error:
            return HostCheck("trial", f"{error}\n{error.log}".strip(), error.fix)
        taken = time.monotonic() - began
        return HostCheck(
            "trial", f"started on {_MACHINE}, admitted and removed a pod in {taken:.1f} s"
        )

    def start(self, scratch: Path) -> None:
        """Starts it with its defaults; `scratch` is an empty folder.

        Raises:
            TrialError: it did not start.
        """
        self._run(scratch, {}, ())

    def _run(
        self,
        scratch: Path,
        config: messages.KubeletConfiguration,
        calls: Iterable[tuple[str, messages.Args]],
    ) -> None:
        tree, state = scratch / "tree", scratch / "state"
        fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(_MACHINE)), tree)
        state.mkdir()
        release = self.kubelet.release
        start = messages.StartArgs(config, str(state), release, root=str(tree))
        command = kubelet_command.command(str(self.kubelet.path), self.arguments, release)
        with closing(Subprocess(command, self.timeout)) as program:
            try:
                handshake(program, self.harness)
                for operation, args in (("start", start), *calls):
                    self._call(program, operation, args)
            except ImplementationFailure as failure:
                slow = failure.outcome == "time-out"
                fix = "give it more time with --timeout" if slow else self._fix
                raise TrialError(str(failure), fix, failure.stderr) from None

    @property
    def _fix(self) -> str:
        return "check --kubelet-arg" if self.arguments else "add what it needs with --kubelet-arg"

    def _call(self, program: Implementation, operation: str, args: messages.Args) -> None:
        answer = program.call(operation, args)
        if not isinstance(answer, messages.Started | messages.Admitted | messages.Done):
            raise TrialError(f"{operation}: {_what(answer)}", self._fix)


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
