"""``python -m numaproof`` is the `numaproof` command."""

from numaproof.main import main

main()
