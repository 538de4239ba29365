"""A reference to call."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from numaproof.protocol import codec
from numaproof.protocol.operations import OPERATIONS
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MACHINE = machines.plain(machines.regular())
STATIC = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}


class Player:
    """A reference and a state directory, called with plain JSON values."""

    def __init__(self, state_dir: Path, *, as_documented: bool = False) -> None:
        self.reference = Reference(follows_docs=as_documented)
        self.state_dir = state_dir

    def ask(self, operation: str, **args: Any) -> dict[str, Any]:
        """Returns the response without its id."""
        typed = codec.from_plain(args, OPERATIONS[operation].args)
        answer = self.reference.call(operation, typed)  # type: ignore[arg-type]
        response: dict[str, Any] = json.loads(codec.encode_answer(0, answer))
        del response["id"]
        return response

    def start(
        self,
        machine: dict[str, Any] | None = MACHINE,
        release: str = "1.35",
        config: dict[str, Any] | None = None,
        **args: Any,
    ) -> dict[str, Any]:
        """Starts with the static policy and one reserved CPU."""
        return self.ask(
            "start",
            machine=machine,
            config={**STATIC, **(config or {})},
            state_dir=str(self.state_dir),
            kubernetes=release,
            **args,
        )


@pytest.fixture
def new_player(tmp_path: Path) -> Callable[..., Player]:
    """Creates players, each in its own folder."""
    numbers = count()

    def make(*, as_documented: bool = False) -> Player:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return Player(folder, as_documented=as_documented)

    return make


@pytest.fixture
def node(new_player: Callable[..., Player]) -> Player:
    """A player on the kubelet's baseline."""
    return new_player()
