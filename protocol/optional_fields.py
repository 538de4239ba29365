"""Fields that answers include only if the last start requests them (versions 1.1 and 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numaproof.protocol import messages
from numaproof.protocol.codec import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class OptionalField(NamedTuple):
    """An optional field of an answer.

    Attributes:
        path: the path of the field, such as ``containers.app.quota``.
        of: the value of ``tell`` that requests it.
        is_present: whether the answer includes it.
    """

    path: str
    of: messages.Told
    is_present: bool


def places(answer: messages.Answer) -> Iterator[OptionalField]:
    """Yields every optional field of an answer."""
    match answer:
        case messages.Started(config=config):
            yield OptionalField("config", "effective-configuration", config is not None)
        case messages.AdmissionRefused(pod=pod):
            yield OptionalField("pod", "refused-pods", pod is not None)
        case messages.Admitted(containers=containers):
            yield from _of_containers("containers", containers)
        case messages.State(pods=pods, metrics=metrics):
            yield OptionalField("metrics", "metrics", metrics is not None)
            for uid, containers in pods.items():
                yield from _of_containers(f"pods.{uid}", containers)


def _of_containers(path: str, containers: messages.Containers) -> Iterator[OptionalField]:
    for name, container in containers.items():
        yield OptionalField(f"{path}.{name}.quota", "quota", container.quota is not None)


def unrequested_fields(
    answer: messages.Answer, tell: Collection[messages.Told]
) -> Iterator[OptionalField]:
    """Yields the optional fields that an answer includes although `tell` does not list them."""
    return (one for one in places(answer) if one.is_present and one.of not in tell)


class RequestedFields:
    """Checks that a program's answers include only optional fields that were requested."""

    def __init__(self) -> None:
        """Starts without any requested fields."""
        self._tell: tuple[messages.Told, ...] = ()
        self._check_node = False

    def ask(self, args: messages.Args) -> None:
        """Records the fields that a request asks for."""
        if isinstance(args, messages.StartArgs):
            self._tell, self._check_node = args.tell, args.check_node

    def check_answer(self, answer: messages.Answer) -> messages.Answer:
        """Returns the answer if it has no unrequested fields.

        Raises:
            ProtocolError: the answer includes a field that was not requested.
        """
        for place in unrequested_fields(answer, self._tell):
            raise ProtocolError(
                f"`{place.path}` was not requested; leave it out unless the start's `tell`"
                f' includes "{place.of}"'
            )
        if isinstance(answer, messages.Admitted) and answer.preempted and not self._check_node:
            raise ProtocolError(
                "pods were preempted although the start has no `check_node`; leave out `preempted`"
            )
        return answer
