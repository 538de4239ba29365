"""What answers tell of version 1.1: what was asked for, and nothing else, as the documents say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages, told

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numaproof.conformance.diagnosis.program import Moment

_EXAMPLES: dict[str, Any] = {
    "quota": {"quota": True},
    "effective-configuration": {"config": {"cpuManagerPolicy": "static", "...": "..."}},
    "refused-pods": {
        "pod": {"phase": "Failed", "reason": "...", "message": "...", "event": "..."},
    },
}
_TEXTS = ("message", "event")


def look(
    moment: Moment, args: messages.Args, answer: messages.Answer, start: messages.StartArgs | None
) -> None:
    """Notes what an answer tells unasked, and what it was asked for and does not tell."""
    tell: Collection[str] = start.tell if start else ()
    for place in told.places(answer):
        if place.told and place.of not in tell:
            moment.wrong(
                f"`{place.path}` was not asked for",
                f'leave it out unless `tell` of the start has "{place.of}"',
            )
        elif place.of in tell and not place.told and not isinstance(args, messages.AssignArgs):
            example = msgspec.json.encode(_EXAMPLES[place.of]).decode()
            moment.wrong(
                f'`{place.path}` is missing: `tell` of the start has "{place.of}"', f"`{example}`"
            )


def compare(
    moment: Moment, answer: messages.Answer, expected: messages.Answer, *, exact: bool
) -> None:
    """Notes where what is told is not what the documents say, which leave no choice.

    The texts of a refused pod count if `exact`. A quota is judged by an invariant.
    """
    match answer, expected:
        case messages.Started(config=dict(given)), messages.Started(config=dict(right)):
            _compare(moment, "config", given, right)
        case (
            messages.AdmissionRefused(pod=messages.RefusedPod() as pod),
            messages.AdmissionRefused(pod=messages.RefusedPod() as other),
        ):
            given, right = msgspec.structs.asdict(pod), msgspec.structs.asdict(other)
            if not exact:
                # The reason of the refusal itself counts where reasons do.
                right |= {"reason": answer.reason, **{name: given[name] for name in _TEXTS}}
            _compare(moment, "pod", given, right)


def without(answer: messages.Answer) -> messages.Answer:
    """An answer without what `compare` looks at, and without what an invariant judges."""
    change = msgspec.structs.replace
    match answer:
        case messages.Started():
            return change(answer, config=None)
        case messages.AdmissionRefused():
            return change(answer, pod=None)
        case messages.Admitted(containers=containers):
            return change(answer, containers=_without_quota(containers))
        case messages.State(pods=pods):
            return change(answer, pods={uid: _without_quota(one) for uid, one in pods.items()})
        case _:
            return answer


def _without_quota(containers: messages.Containers) -> messages.Containers:
    return {name: msgspec.structs.replace(one, quota=None) for name, one in containers.items()}


def look_at_preferred(
    moment: Moment,
    answer: messages.Admitted,
    expected: messages.Answer,
    start: messages.StartArgs | None,
) -> None:
    """Notes where a container has other devices than those that their plugin prefers."""
    preferred = {one.resource: one.preferred for one in start.devices} if start else {}
    if not any(preferred.values()) or not isinstance(expected, messages.Admitted):
        return
    for name, container in expected.containers.items():
        for resource, right in (container.devices or {}).items():
            own = answer.containers.get(name)
            given = (own.devices or {}).get(resource, ()) if own else ()
            if preferred.get(resource) and sorted(given) != sorted(right):
                moment.wrong(
                    f"`{name}` has {_listed(given)} of {resource}, whose plugin would have"
                    f" {_listed(preferred[resource])} allocated, in this order",
                    f"allocate {_listed(right)}",
                )


def _compare(moment: Moment, path: str, given: dict[str, Any], right: dict[str, Any]) -> None:
    for name, wrong, hint in _differing(given, right):
        moment.wrong(f"`{path}.{name}` {wrong}", hint)


def _differing(given: dict[str, Any], right: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*given, *right}):
        if name not in right:
            yield name, "is nothing that is told", "leave it out"
        elif name not in given:
            yield name, "is missing", f"`{_json({name: right[name]})}`"
        elif given[name] != right[name]:
            yield name, f"is {_json(given[name])}", f"`{_json(right[name])}`"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _listed(devices: Collection[str]) -> str:
    return ", ".join(devices) or "none"
