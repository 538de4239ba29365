"""What answers say only where the start asked to be told of it, by ``tell`` (version 1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol import messages
from numaproof.protocol.codec import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class OptionalField(NamedTuple):
    """A place of an answer at which something may be told.

    Attributes:
        path: where it is, such as ``containers.app.quota``.
        of: what the start asks to be told of.
        is_present: whether something stands there.
    """

    path: str
    of: messages.Told
    is_present: bool


def places(answer: messages.Answer) -> Iterator[OptionalField]:
    """Every place of an answer at which something may be told."""
    match answer:
        case messages.Started(config=config):
            yield OptionalField("config", "effective-configuration", config is not None)
        case messages.AdmissionRefused(pod=pod):
            yield OptionalField("pod", "refused-pods", pod is not None)
        case messages.Admitted(containers=containers):
            yield from _of_containers("containers", containers)
        case messages.State(pods=pods):
            for uid, containers in pods.items():
                yield from _of_containers(f"pods.{uid}", containers)


def _of_containers(path: str, containers: messages.Containers) -> Iterator[OptionalField]:
    for name, container in containers.items():
        yield OptionalField(f"{path}.{name}.quota", "quota", container.quota is not None)


def unrequested_fields(
    answer: messages.Answer, tell: Collection[messages.Told]
) -> Iterator[OptionalField]:
    """What an answer tells though the start did not ask for it."""
    return (one for one in places(answer) if one.is_present and one.of not in tell)


class RequestedFields:
    """Holds the answers of a program to what the last start asked to be told of."""

    def __init__(self) -> None:
        """No start has asked for anything."""
        self._tell: tuple[messages.Told, ...] = ()

    def ask(self, args: messages.Args) -> None:
        """Notes what a request asks for."""
        if isinstance(args, messages.StartArgs):
            self._tell = args.tell

    def check_answer(self, answer: messages.Answer) -> messages.Answer:
        """An answer to a request that has been noted.

        Raises:
            ProtocolError: it tells what the start did not ask for.
        """
        for place in unrequested_fields(answer, self._tell):
            raise ProtocolError(
                f"`{place.path}` was not asked for; leave it out unless `tell` of the start has"
                f' "{place.of}"'
            )
        return answer
