"""The kubelet's functions that tests call: the arguments that depend on the release."""

from __future__ import annotations

from numaproof.protocol.releases import RELEASES

_FIRST = {".": (), "l": ("logger",), "c": ("tCtx",)}

_SIGNATURES = {
    "cpu NewStaticPolicy": ".....lll",
    "cpu Start": ".....lll",
    "cpu Allocate": ".....llL",
    "cpu RemoveContainer": ".....lll",
    "cpu removeStaleState": ".....lll",
    "cpu NewMemoryState": ".....lll",
    "memory NewPolicyStatic": "....clll",
    "memory Start": "....clll",
    "memory Allocate": "....cllC",
    "memory RemoveContainer": "....clll",
    "memory GetPodTopologyHints": "....cllL",
    "memory GetTopologyHints": "....cllL",
    "memory GetAllocatableMemory": "....c...",
    "memory NewMemoryState": "....llll",
    "memory NewCheckpointState": "....llll",
    "devices newManagerImpl": ".....lll",
    "devices readCheckpoint": ".....lll",
    "devices genericDeviceUpdateCallback": ".....lll",
    "devices GetTopologyHints": ".......L",
    "devices GetPodTopologyHints": ".......L",
    "topology NewManager": ".......l",
    "topology NewFakeManager": ".......l",
    "topology NewFakeManagerWithHint": ".......l",
    "topology NewFakeManagerWithPolicy": ".......l",
    "topology NewPolicyOptions": ".....lll",
    "topology AddHintProvider": ".....lll",
    "topology Admit": ".......c",
    "topology GetAffinity": ".......l",
    "topology Merge": ".....lll",
}
"""The first parameter in each release: none (a dot), a logger or a context. A capital letter means
that the operation is the last parameter."""

OPERATION = "lifecycle.AddOperation"


def arguments(function: str, release: str, *common: str) -> str:
    """Returns the arguments of a call in a release, given those that all releases have.

    Args:
        function: the package's subject and the function's name, such as ``cpu Allocate``.
        release: the minor release.
        common: the arguments in Go.
    """
    letter = _SIGNATURES[function][RELEASES.index(release)]
    last = (OPERATION,) if letter.isupper() else ()
    return ", ".join((*_FIRST[letter.lower()], *common, *last))


def since(release: str, first: str) -> bool:
    """Whether a release is `first` or later."""
    return RELEASES.index(release) >= RELEASES.index(first)
