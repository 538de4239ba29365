"""The contents of an archive of ``kubectl numaproof``."""

from __future__ import annotations

import msgspec

NODE = "node.json"
PODS = "pods.json"
CONFIGURATION = "configz.json"
TOPOLOGY = "noderesourcetopology.json"
FLAGS = "kubelet-flags.txt"
TREE = "tree"
STATE = "state"
RECORD = "collected.yaml"

VERSION = 1
"""The version of the format; a change that earlier readers misunderstand increments it."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of an archive that could not be collected, why, and how to get it."""

    part: str
    message: str
    fix: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """How an archive was collected, as in its ``collected.yaml``.

    Attributes:
        version: the version of the format.
        node: the node's name.
        kubernetes: the kubelet's version, such as ``v1.36.2``; empty if it is unknown.
        parts: the files and folders of the archive.
        failures: the parts that could not be collected.
        left_out: the fields that were left out of each file.
    """

    version: int = VERSION
    node: str
    kubernetes: str = ""
    parts: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    left_out: dict[str, tuple[str, ...]] = {}
