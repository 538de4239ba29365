"""The garbage collector of a process that numaproof starts.

A program that imports numaproof decides for itself.
"""

import atexit
import gc

_NEW_OBJECTS = 100_000


def freeze_at_exit() -> None:
    """Stops the collector from freeing this process's objects while it exits.

    It can crash on msgspec's types (msgspec issue 717).
    """
    atexit.register(gc.freeze)


def collect_seldom() -> None:
    """Lets the collector wait for more new objects than the few hundred of Python's own setting.

    Messages, states and cases are many and hold no cycles: a run of all cases took a fifth longer.
    """
    gc.set_threshold(_NEW_OBJECTS)
