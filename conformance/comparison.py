"""Two answers to the same call, compared at a level.

Levels are those of the protocol page. What the kubelet itself answers differently from run to
run is compared in the form that is the same in every run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.tables import applies
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from numaproof.protocol.messages import Level


def difference(left: messages.Answer, right: messages.Answer, level: Level) -> str | None:
    """What two answers disagree about at a level, in a sentence; None where they agree.

    An `Unsupported` on either side can't be compared and is no disagreement.
    """
    if isinstance(left, messages.Unsupported) or isinstance(right, messages.Unsupported):
        return None
    if not applies("admission", level):
        return None
    kinds = _kind(left), _kind(right)
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} against {kinds[1]}"
    if not applies("placement", level):
        return None
    exact = applies("kubelet", level)
    place = _first_difference("", _comparable(left, exact=exact), _comparable(right, exact=exact))
    return place.removeprefix(".") if place else None


_NAMED_OPTION = re.compile(
    r"CPU Manager Policy (?:Alpha|Beta)-level Options not enabled, but option .* provided"
    r"|unknown CPU Manager Policy option: .*"
    r"|bad value for option .*"
)


def any_option(answer: messages.Answer) -> messages.Answer:
    """A refusal of options without the name of the one that it names.

    Of several bad options the kubelet names any: it walks a map.
    """
    if isinstance(answer, messages.StartRefused):
        message = _NAMED_OPTION.sub("one of the options is refused", answer.message)
        return msgspec.structs.replace(answer, message=message)
    return answer


Places = dict[str, dict[str, tuple[int, ...]]]
"""The NUMA nodes of every device that was ever reported, by resource and id."""


def any_device(answer: messages.Answer, places: Places) -> messages.Answer:
    """An answer whose devices are told by their NUMA nodes in the place of their ids.

    Of several devices on the same nodes the kubelet picks any: it walks a set.
    """
    match answer:
        case messages.Admitted():
            return messages.Admitted(_by_nodes(answer.containers, places))
        case messages.State():
            pods = {uid: _by_nodes(held, places) for uid, held in answer.pods.items()}
            return msgspec.structs.replace(answer, pods=pods)
        case _:
            return answer


def _by_nodes(containers: messages.Containers, places: Places) -> messages.Containers:
    return {
        name: msgspec.structs.replace(
            container,
            devices=None
            if container.devices is None
            else {
                resource: tuple(sorted(str(list(places[resource][one])) for one in ids))
                if all(one in places.get(resource, {}) for one in ids)
                else ids
                for resource, ids in container.devices.items()
            },
        )
        for name, container in containers.items()
    }


def _kind(answer: messages.Answer) -> str:
    match answer:
        case messages.StartRefused():
            return f"refused at stage {answer.stage}"
        case messages.AdmissionRefused():
            return f"refused with {answer.reason}"
        case messages.Fault():
            return "a fault"
        case _:
            return "accepted"


def _comparable(answer: messages.Answer, *, exact: bool) -> Any:
    plain = codec.to_plain(answer)
    match answer:
        case messages.StartRefused() | messages.AdmissionRefused() | messages.Fault():
            return plain if exact else {}
        case messages.State():
            files = {name: _file(text) for name, text in answer.files.items()}
            return {**plain, "files": files if exact else {}}
        case messages.NodeHints():
            return {**plain, "devices": plain.get("devices") or {}}
        case _ if "topology" in plain:
            nodes = {str(node["node_id"]): node for node in plain.pop("topology") or ()}
            return {**plain, "nodes": nodes}
        case _:
            return plain


def _file(text: str) -> Any:
    """A checkpoint's content, without the order in which the kubelet happens to write blocks."""
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    entries = content.get("entries") if isinstance(content, dict) else None
    if not isinstance(entries, dict) or "machineState" not in content:
        return text
    for containers in entries.values():
        for blocks in containers.values():
            blocks.sort(key=lambda block: block["type"])
    content.pop("checksum", None)
    return content


def _first_difference(where: str, left: Any, right: Any) -> str | None:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            if key not in left or key not in right:
                return f"{where}.{key} is only on one side"
            found = _first_difference(f"{where}.{key}", left[key], right[key])
            if found:
                return found
        return None
    return None if left == right else f"{where} is {left!r} against {right!r}"
