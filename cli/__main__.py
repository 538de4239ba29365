"""``python -m numaproof`` is the `numaproof` command."""

import sys

INTERRUPTED = 3


def run() -> None:
    """Runs the command; an interrupt while it is still being loaded ends it like any other."""
    try:
        from numaproof.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
