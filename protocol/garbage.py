"""Settings for Python's garbage collector in processes that numaproof starts.

Programs that import numaproof keep their own settings.
"""

import atexit
import gc

_NEW_OBJECTS = 100_000


def freeze_at_exit() -> None:
    """Prevents this process's objects from being collected at exit.

    Collecting msgspec's types at exit can crash the interpreter (msgspec issue 717).
    """
    atexit.register(gc.freeze)


def collect_seldom() -> None:
    """Makes the collector run less often.

    Messages, states and cases are numerous and free of cycles. With Python's default threshold,
    running all cases takes a fifth longer.
    """
    gc.set_threshold(_NEW_OBJECTS)
