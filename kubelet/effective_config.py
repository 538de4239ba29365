"""Asks a kubelet for the configuration in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from numaproof.protocol.messages import InForce

_FIELDS = (
    *("cpuManagerPolicy", "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod"),
    *("memoryManagerPolicy", "topologyManagerPolicy", "topologyManagerScope"),
    *("topologyManagerPolicyOptions", "reservedSystemCPUs", "kubeReserved", "systemReserved"),
    *("evictionHard", "cpuCFSQuota"),
)
_URL = "https://127.0.0.1:10250/configz"


async def in_force() -> InForce:
    """The fields that concern the managers, with their defaults.

    The kubelet's certificate is its own, so it isn't verified.
    """
    async with aiohttp.ClientSession() as session, session.get(_URL, ssl=False) as answer:
        fields: dict[str, Any] = (await answer.json())["kubeletconfig"]
    return {name: fields[name] for name in _FIELDS if name in fields}
