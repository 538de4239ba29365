"""``python -m numaproof`` is the `numaproof` command."""

from numaproof.cli.entry import run

if __name__ == "__main__":
    run()
