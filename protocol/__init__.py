"""The conformance protocol: typed messages, their schemas, one line in and one line out.

This layer imports nothing else from the project. Everything that passes between the harness and
an implementation, or between the runner and the reports, is a type defined here.
"""

import atexit
import gc

# The garbage collector can crash while it frees msgspec's types at exit (msgspec issue 717).
# What is frozen by then it leaves alone.
atexit.register(gc.freeze)
