"""Where the `numaproof` command begins: what it does with errors that nobody expected."""

import os
import sys
import traceback

CUT_SHORT = 3


def run() -> None:
    """Runs the command; an interrupt while it is still being loaded ends it like any other.

    What nobody expected is a bug of ours: it is told in a line, and in full where the variable
    ``NUMAPROOF_TRACEBACK`` is set.
    """
    try:
        from numaproof.cli.main import main
        from numaproof.protocol.garbage import collect_seldom, freeze_at_exit

        freeze_at_exit()
        collect_seldom()

        main()
    except KeyboardInterrupt:
        sys.exit(CUT_SHORT)
    except MemoryError:
        sys.stderr.write("numaproof: out of memory: play fewer cases, or on fewer machines\n")
        sys.exit(CUT_SHORT)
    except Exception as error:
        if os.environ.get("NUMAPROOF_TRACEBACK"):
            raise
        _report_bug(error)
        sys.exit(CUT_SHORT)


def _report_bug(error: Exception) -> None:
    from numaproof.reports.untrusted_text import one_line

    *_, place = traceback.extract_tb(error.__traceback__)
    file = "/".join(place.filename.split("/")[-2:])
    said = one_line(f"{type(error).__name__}: {error}", 300)
    if sys.stderr:
        sys.stderr.write(
            f"numaproof: a bug in numaproof ended the command: {said} ({file}:{place.lineno})\n"
            "Report it with the command and its input; NUMAPROOF_TRACEBACK=1 shows all of it.\n"
        )
