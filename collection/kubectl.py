"""The user's own kubectl: its command lines, and what its errors mean."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Cause = Literal["absent", "unserved", "forbidden", "unreachable", "failed"]
"""Why kubectl failed.

`absent`: the server has no such object. `unserved`: it has no such resource or path. `unreachable`:
kubectl doesn't run, or can't talk to the server. `failed`: anything else.
"""


class KubectlError(Exception):
    """A command of kubectl failed; `cause` says why, and `fix` what to do about it."""

    def __init__(self, cause: Cause, message: str, fix: str = "") -> None:
        super().__init__(f"{message} ({fix})" if fix else message)
        self.cause = cause
        self.message = message
        self.fix = fix


@dataclass(frozen=True)
class Kubectl:
    """A kubectl, the cluster that it talks to, and the time limit of a command in seconds."""

    program: str = "kubectl"
    context: str = ""
    kubeconfig: str = ""
    timeout: float = 120

    def command(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """Returns a complete command line."""
        cluster = (
            f"--{name}={value}"
            for name, value in (("kubeconfig", self.kubeconfig), ("context", self.context))
            if value
        )
        return (self.program, *arguments, *cluster)

    def run(self, arguments: Sequence[str], stdin: str = "") -> bytes:
        """Runs a command and returns its output.

        Raises:
            KubectlError: it can't be started, fails, or exceeds the time limit.
        """
        try:
            ended = subprocess.run(  # noqa: S603 - the program that the user named
                self.command(arguments),
                input=stdin.encode(),
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except FileNotFoundError:
            fix = "install it, or name it with --kubectl PATH"
            raise KubectlError("unreachable", f"{self.program}: no such program", fix) from None
        except OSError as error:
            message = f"{self.program}: cannot be started: {error.strerror}"
            raise KubectlError("unreachable", message, "name kubectl with --kubectl PATH") from None
        except subprocess.TimeoutExpired:
            message = f"no answer to `{shlex.join(self.command(arguments))}` in {self.timeout:g} s"
            raise KubectlError("unreachable", message, "raise --timeout") from None
        if ended.returncode:
            raise interpret(ended.stderr.decode("utf-8", "replace"))
        return ended.stdout


def interpret(stderr: str) -> KubectlError:
    """Returns what kubectl's messages mean; the last one counts."""
    lines = [line.strip() for line in stderr.splitlines()]
    lines = [line for line in lines if line and not _NOISE.match(line)]
    last = lines[-1] if lines else "kubectl failed without a message"
    if denial := _DENIAL.search(last):
        _, verb, resource, group, where = denial.groups()
        api = f" of API group {group}" if group else ""
        scope = "a ClusterRole" if "cluster scope" in where else f"a Role {where}"
        fix = f"allow verb {verb} on resource {resource}{api} in {scope}"
        return KubectlError("forbidden", f"not allowed to {verb} {resource}", fix)
    for pattern, cause in _CAUSES:
        if pattern.search(last):
            return KubectlError(cause, last)
    return KubectlError("failed", last)


_NOISE = re.compile(r"[EWI][0-9]{4} |Warning: ")
"""Lines of kubectl's own log, and the server's warnings."""

_DENIAL = re.compile(
    r'User "([^"]*)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"'
    r"(?:.*?)(at the cluster scope|in the namespace \"[^\"]*\"|$)"
)
"""The authorizer's message. (Kubernetes, `ForbiddenMessage` of the API server.)"""

_CAUSES: tuple[tuple[re.Pattern[str], Cause], ...] = (
    (re.compile(r"\(NotFound\): the server could not find the requested resource"), "unserved"),
    (re.compile(r"the server doesn't have a resource type"), "unserved"),
    (re.compile(r"\(NotFound\)"), "absent"),
    (re.compile(r"\(Forbidden\)"), "forbidden"),
    (re.compile(r"^Error from server \((?!Unauthorized)"), "failed"),
    (
        re.compile(
            r"Unauthorized|[Uu]nable to connect|connection to the server|Error in configuration"
            r"|context was not found|no such file|invalid configuration|no configuration has been"
            r"|error loading config|credentials|exec plugin|i/o timeout|deadline exceeded"
        ),
        "unreachable",
    ),
)
"""What the messages of kubectl mean, in order of precedence."""
