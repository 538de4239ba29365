"""How a process that uses messages ends."""

import atexit
import gc


def freeze_at_exit() -> None:
    """Stops the garbage collector from freeing this process's objects while it exits.

    The collector can crash on msgspec's types (msgspec issue 717). Only processes that numaproof
    starts call this; a program that imports numaproof decides for itself.
    """
    atexit.register(gc.freeze)
