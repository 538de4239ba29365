"""Asks a kubelet for the metrics of its managers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import aiohttp

from numaproof.reference.metrics import ALIGNED, keep_known

if TYPE_CHECKING:
    from collections.abc import Collection

_URL = "https://127.0.0.1:10250/metrics"
_SAMPLE = re.compile(r"kubelet_(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


async def read(names: Collection[str]) -> dict[str, int]:
    """The metrics with these names, which are those of a release, as the protocol has them.

    The kubelet's certificate is its own, so it isn't verified.
    """
    async with aiohttp.ClientSession() as session, session.get(_URL, ssl=False) as answer:
        answer.raise_for_status()
        return parse(await answer.text(), names)


def parse(text: str, names: Collection[str]) -> dict[str, int]:
    """Reads metrics in Prometheus's text format."""
    found = {}
    for line in text.splitlines():
        if sample := _SAMPLE.fullmatch(line):
            pairs = ",".join(f"{name}={of}" for name, of in sorted(_LABEL.findall(sample[2] or "")))
            found[sample[1] + (f"{{{pairs}}}" if pairs else "")] = sample[3]
    known = {name.partition("{")[0] for name in names}
    numbers = {
        name: int(float(value)) for name, value in found.items() if name.partition("{")[0] in known
    }
    return keep_known(numbers, names)


def without_probes(metrics: dict[str, int], probes: int, scope: str) -> dict[str, int]:
    """The metrics without the admissions of pods that the driver added.

    Args:
        metrics: the kubelet's metrics.
        probes: the number of such pods, which have one container without requests.
        scope: the Topology Manager's scope.
    """
    counted = {
        "topology_manager_admission_requests_total",
        f"{ALIGNED}{{boundary=numa_node,scope={scope}}}",
    }
    found = {name: value - probes * (name in counted) for name, value in metrics.items()}
    return {name: value for name, value in found.items() if value or "{" not in name}
