"""How a process that uses messages ends."""

import atexit
import gc


def freeze_at_exit() -> None:
    """Keeps the garbage collector from the objects of this process while it ends.

    It can crash while it frees msgspec's types (msgspec issue 717). Only processes that the project
    starts do so; one that imports it decides for itself.
    """
    atexit.register(gc.freeze)
