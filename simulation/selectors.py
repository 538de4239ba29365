"""The selectors by which workloads own their pods, which the API server checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.inputs.documents import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.inputs.documents import DocumentError
    from numaproof.simulation.workloads import Workload

_SELECTOR = ("spec", "selector")
_LABELS = ("spec", "template", "metadata", "labels")
_TYPES = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_PLAIN = "ReplicationController"
"""The type whose selector is a mapping of labels."""


def mismatches(workload: Workload) -> Iterator[DocumentError]:
    """Yields an error if a selector doesn't match the labels of the workload's own template.

    Selectors that are absent or have wrong types are not judged.
    """
    selector = _mapping(value_at(workload.fields, _SELECTOR))
    if not selector or workload.type_ not in (*_TYPES, _PLAIN):
        return
    if workload.type_ == _PLAIN:
        selector = {"matchLabels": selector}
    labels = _mapping(value_at(workload.fields, _LABELS))
    if not _matches(selector, labels):
        yield workload.document.error(
            (*workload.path, *_SELECTOR),
            "the selector doesn't match the labels of the template",
            f"make {'.'.join(_LABELS)} match it",
        )


def _matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Whether labels satisfy all requirements of a LabelSelector."""
    expressions = selector.get("matchExpressions")
    return _mapping(selector.get("matchLabels")).items() <= labels.items() and all(
        _holds(_mapping(one), labels) for one in (expressions or ())
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = str(expression.get("key")), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return True


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
