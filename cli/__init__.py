"""Conformance and fuzz testing for the Kubernetes node resource managers."""

import atexit
import gc

# The garbage collector can crash while it frees msgspec's types at exit (msgspec issue 717).
# What is frozen by then it leaves alone.
atexit.register(gc.freeze)
