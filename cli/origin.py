"""When and where a run starts, for its reports."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from numaproof.protocol.events import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

_GIT = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
_MAX_SECONDS = 5


def origin_of(environment: Mapping[str, str]) -> Origin:
    """Returns the origin of a run that starts now, in the working directory.

    Args:
        environment: the environment variables; `GITHUB_SHA` takes precedence over git.
    """
    now = datetime.now(UTC)
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Origin(
        now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        environment.get("GITHUB_SHA", "") or _commit(),
        f"{system}, Python {platform.python_version()}",
    )


def _commit() -> str:
    """Returns the commit of the working directory; empty outside a repository or without git."""
    try:
        found = subprocess.run(  # noqa: S603 - a fixed command
            _GIT, capture_output=True, check=True, text=True, timeout=_MAX_SECONDS
        )
    except (OSError, UnicodeError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
