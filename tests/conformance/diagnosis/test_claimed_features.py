"""Features and options that only some implementations claim are asked for, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis

    Examine = Callable[..., Diagnosis]

PROGRAM = """\
import json
import sys

from numaproof.protocol import codec
from numaproof.reference.implementation import Reference

reference = Reference()
for line in sys.stdin.buffer:
    request = json.loads(line)
    args = request["args"]
    config = args.get("config", {})
    spec = args.get("pod", {}).get("spec", {})
    WRONG
    given = codec.decode(json.dumps(request).encode(), codec.Request)
    answer = reference.call(given.op, codec.decode_args(given))
    sys.stdout.buffer.write(codec.encode_answer(given.id, answer))
    sys.stdout.buffer.flush()
"""
"""The reference, which gets something else to read than what it is asked."""

IGNORED = {
    "a topology policy": (
        'config.pop("topologyManagerPolicy", None)',
        "another asks for 3 CPUs, which no node has left: so it is refused",
    ),
    "a scope": (
        'config.pop("topologyManagerScope", None)',
        "two more ask for 3 CPUs, which no node has left for both: refused as a whole",
    ),
    "an option of the Topology Manager": (
        'if config.pop("topologyManagerPolicyOptions", {}): config["cpuManagerPolicy"] = "odd"',
        "a start with `max-allowable-numa-nodes: 8`",
    ),
    "what makes a sidecar": (
        '[one.pop("restartPolicy", None) for one in spec.get("initContainers", ())]',
        "a restartable init container asks for 1 CPU, its app container for 2: both keep theirs",
    ),
    "resources of pods": (
        'spec.pop("resources", None)',
        "a pod asks for 2 CPUs as a whole, each container for 1",
    ),
    "huge pages": (
        'for one in spec["containers"] if "huge" in str(spec) else (): one.pop("resources")',
        "a pod asks for 2048 of them: there are too few",
    ),
    "flags": (
        'args.pop("flags", None)',
        "a flag that no kubelet has: a start that must be refused",
    ),
    "reserved CPUs of flags": (
        'flags = args.get("flags", []); flags[:] = [one for one in flags if "static" not in one]',
        "flags against the configuration, which has policy none and reserves nothing",
    ),
}


@pytest.mark.parametrize("what", IGNORED)
def test_a_program_that_ignores_what_it_claims_is_told(what: str, examined_text: Examine) -> None:
    wrong, about = IGNORED[what]
    diagnosis = examined_text(PROGRAM.replace("WRONG", wrong))
    wrong_at = [
        at
        for at, exchange in enumerate(diagnosis.exchanges)
        if any(not one.advice for one in exchange.findings)
    ]
    asked = next(at for at, one in enumerate(diagnosis.exchanges) if about in one.about)
    # What only the state shows stands at the state that follows.
    assert {asked, asked + 1} & {*wrong_at}, [diagnosis.exchanges[at].about for at in wrong_at]


TELLING = {
    "nothing": (
        'args.pop("tell", None)',
        '`config` is missing: `tell` of the start has "effective-configuration"',
        '`pod` is missing: `tell` of the start has "refused-pods"',
        '`containers.limited.quota` is missing: `tell` of the start has "quota"',
        '`pods.uid-web.app.quota` is missing: `tell` of the start has "quota"',
    ),
    "all": (
        'args |= {"tell": ALL} if request["op"] == "start" else {}',
        "`config` was not asked for",
        "`pod` was not asked for",
        "`containers.app.quota` was not asked for",
    ),
    "another period": (
        'args.get("tell") and config.update({"cpuManagerReconcilePeriod": "30s"})',
        "config.cpuManagerReconcilePeriod\nexpected: 1m30s\ngot: 30s",
    ),
    "no quota": (
        'args.get("tell") and config.update({"cpuCFSQuota": False})',
        "config.cpuCFSQuota\nexpected: true\ngot: false",
        "CFS quota, and a CPU limit [quota-enforces-limits]",
    ),
    "no preference": (
        '[one.pop("preferred", None) for one in args.get("devices", ())]',
        'containers.app.devices.vendor.example/nic\nexpected: ["d2"]\ngot: ["d0"]',
    ),
}
"""What a program does with what it is asked to tell, and some of what it hears of that."""


@pytest.mark.parametrize("what", TELLING)
def test_a_program_hears_what_it_tells_wrongly(what: str, examined_text: Examine) -> None:
    wrong, *sentences = TELLING[what]
    every = 'ALL = ["quota", "effective-configuration", "refused-pods"]\n'
    diagnosis = examined_text(every + PROGRAM.replace("WRONG", wrong))
    found = {one.wrong for exchange in diagnosis.exchanges for one in exchange.findings}
    for sentence in sentences:
        assert any(one.startswith(sentence) or sentence in one for one in found), found


def test_a_wrong_quota_is_told_once(examined_text: Examine) -> None:
    wrong, *_ = TELLING["no quota"]
    diagnosis = examined_text(PROGRAM.replace("WRONG", wrong))
    found = [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]
    about = [one for one in found if "quota" in one.lower() and "cpuCFSQuota" not in one]
    assert about
    assert all("[quota-" in one for one in about), about


def test_a_program_with_everything_is_healthy(examined_text: Examine) -> None:
    diagnosis = examined_text(PROGRAM.replace("WRONG", "pass"))
    assert diagnosis.healthy, [one.findings for one in diagnosis.exchanges if one.findings]
