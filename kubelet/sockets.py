"""Short paths for Unix sockets, whose paths have at most 107 bytes, and channels to them."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# gRPC shares connections between channels to the same path, but a short path may soon be another
# folder's.
_OWN_CONNECTIONS = ("grpc.use_local_subchannel_pool", 1)

# A kubelet rejects calls of podresources that come too fast.
_RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
            },
        }
    ]
}
_OPTIONS = (_OWN_CONNECTIONS, ("grpc.service_config", json.dumps(_RETRIES)))


def channel(folder: str, name: str) -> grpc.aio.Channel:
    """A channel to a socket in a folder, which may have a short path."""
    return grpc.aio.insecure_channel(f"unix:{folder}/{name}", _OPTIONS)


@contextmanager
def short_path(folder: Path) -> Iterator[str]:
    """Another name for a folder: that of an open file descriptor, as long as the context lasts."""
    opened = os.open(folder, os.O_PATH)
    try:
        yield f"/proc/self/fd/{opened}"
    finally:
        os.close(opened)
