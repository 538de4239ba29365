"""What `hello` claims exists and goes together, or the handshake fails: `names.yaml` has both."""

from __future__ import annotations

from typing import Any

from builders.tables import Table
from numaproof.conformance.execution.implementation import BrokeProtocol, InProcess, handshake
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference

NAMES = Table(__file__, "names.yaml")
HELLO = codec.to_plain(handshake(InProcess(Reference), "tests"))


@NAMES
def test_a_claim_that_does_not_exist_is_a_failed_handshake(row: dict[str, Any]) -> None:
    line = codec.encode({"id": 1, "ok": {**HELLO, **row["claims"]}})

    class Claiming(Reference):
        def hello(self, _: messages.HelloArgs) -> messages.Hello:
            answer = codec.decode_answer(line, 1, "hello")
            assert isinstance(answer, messages.Hello)
            return answer

    try:
        codec.decode_answer(line, 1, "hello")
        handshake(InProcess(Claiming), "tests")
    except (codec.ProtocolError, BrokeProtocol) as error:
        NAMES.check(row, str(error))
    else:
        NAMES.check(row, "fine")
