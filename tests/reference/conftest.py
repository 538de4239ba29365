"""What the tests of the reference build their nodes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders import machines, pods
from numaproof.protocol import codec
from numaproof.protocol.operations import OPERATIONS
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def make_machine(
    nodes: int = 1, cores: int = 4, smt: int = 2, sockets: int = 1, uncore: int = 0
) -> dict[str, Any]:
    """A regular machine in plain values; `uncore` cores in a row share an uncore cache."""
    return machines.plain(machines.regular(nodes, cores, smt, sockets, cores_per_cache=uncore))


def make_pod(uid: str, *apps: str, init: tuple[str, ...] = ()) -> dict[str, Any]:
    """A Guaranteed pod, one container for each CPU quantity; a sidecar's ends in ``*``."""

    def resources(cpus: str) -> dict[str, Any]:
        made = pods.guaranteed({"cpu": cpus.rstrip("*"), "memory": "64Mi"})
        return pods.Sidecar(made) if cpus.endswith("*") else made

    return pods.numbered(uid, map(resources, apps), map(resources, init))


STATIC = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}


class Player:
    """A reference and a state directory, spoken to in plain JSON values."""

    def __init__(self, state_dir: Path, *, documented: bool = False) -> None:
        self.reference = Reference(documented=documented)
        self.state_dir = state_dir

    def ask(self, operation: str, **args: Any) -> dict[str, Any]:
        """The response without its id."""
        typed = codec.from_plain(args, OPERATIONS[operation].args)
        answer = self.reference.call(operation, typed)  # type: ignore[arg-type]
        response: dict[str, Any] = json.loads(codec.encode_answer(0, answer))
        del response["id"]
        return response

    def start(
        self, machine: dict[str, Any] | None = None, release: str = "1.35", **config: Any
    ) -> dict[str, Any]:
        """Starts with the static policy and one reserved CPU; `pods` may be among `config`."""
        pods = config.pop("pods", [])
        return self.ask(
            "start",
            machine=machine or make_machine(),
            config={**STATIC, **config},
            state_dir=str(self.state_dir),
            kubernetes=release,
            pods=pods,
        )

    def refusal(self, **config: Any) -> tuple[str, str]:
        """Stage and text with which a start is refused."""
        refused = self.start(**config)["refused"]
        return refused["stage"], refused["message"].replace(str(self.state_dir), "$STATE_DIR")

    def admit(self, pod: dict[str, Any]) -> dict[str, str]:
        """Exclusive CPUs by container name."""
        containers = self.ask("admit", pod=pod)["ok"]["containers"]
        return {name: container["exclusive"] for name, container in containers.items()}

    def shared(self) -> str:
        """The shared pool."""
        pool: str = self.ask("state")["ok"]["shared"]
        return pool


@pytest.fixture
def machine() -> Callable[..., dict[str, Any]]:
    return make_machine


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    return make_pod


@pytest.fixture
def node(tmp_path: Path) -> Player:
    return Player(tmp_path)


@pytest.fixture
def documented(tmp_path: Path) -> Player:
    return Player(tmp_path, documented=True)
