"""The entry points of the commands, which report unexpected errors as bugs."""

import os
import sys
import traceback
from contextlib import suppress

CUT_SHORT = 3


def run() -> None:
    """Runs the `numaproof` command."""
    _run("numaproof")


def run_kubectl_plugin() -> None:
    """Runs the `kubectl numaproof` command."""
    _run("kubectl numaproof")


def _run(name: str) -> None:
    """Runs a command; handles interrupts even while modules are still loading.

    An unexpected error is a bug in numaproof. It is reported in one line, or with a traceback if
    ``NUMAPROOF_TRACEBACK`` is set.
    """
    try:
        from numaproof.cli.main import main
        from numaproof.protocol.garbage import collect_seldom, freeze_at_exit

        freeze_at_exit()
        collect_seldom()
        _keep_caches_together()

        main(name)
    except KeyboardInterrupt:
        sys.exit(CUT_SHORT)
    except MemoryError:
        sys.stderr.write("numaproof: out of memory; run fewer cases or use fewer machines\n")
        sys.exit(CUT_SHORT)
    except Exception as error:
        if os.environ.get("NUMAPROOF_TRACEBACK"):
            raise
        _report_bug(error)
        sys.exit(CUT_SHORT)


def _keep_caches_together() -> None:
    """Moves Hypothesis's cache from the working directory to the other caches."""
    from numaproof.workdir.folders import cache_folder

    with suppress(RuntimeError):  # there is no home
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_folder() / "hypothesis"))


def _report_bug(error: Exception) -> None:
    from numaproof.reports.untrusted_text import one_line

    *_, place = traceback.extract_tb(error.__traceback__)
    file = "/".join(place.filename.split("/")[-2:])
    said = one_line(f"{type(error).__name__}: {error}", 300)
    if sys.stderr:
        sys.stderr.write(
            f"numaproof: internal error, a bug in numaproof: {said} ({file}:{place.lineno})\n"
            "Please report it with the command, its input and the traceback, which"
            " NUMAPROOF_TRACEBACK=1 prints.\n"
        )
