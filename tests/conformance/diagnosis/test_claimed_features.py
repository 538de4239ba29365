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


def test_a_program_with_everything_is_healthy(examined_text: Examine) -> None:
    diagnosis = examined_text(PROGRAM.replace("WRONG", "pass"))
    assert diagnosis.healthy, [one.findings for one in diagnosis.exchanges if one.findings]
