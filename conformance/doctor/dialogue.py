"""The dialogue of `numaproof doctor`: the cases of ``dialogue.yaml``, adapted to the claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.conformance.cases import expressions, releases
from numaproof.conformance.cases.loading import merge_configs
from numaproof.conformance.cases.schema import Case, Expectation, Step, Written
from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.conformance.doctor.wording import read_data
from numaproof.protocol.machine import MachineInfo  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.protocol.messages import Hello

_RESERVED_FOR = {
    "cpuManagerPolicy": ("reservedSystemCPUs",),
    "memoryManagerPolicy": ("kubeReserved", "reservedMemory"),
}
"""Configuration fields that are left out if the policy isn't claimed."""


class DialogueStep(Step, frozen=True, kw_only=True):
    """A step of the dialogue. ``dialogue.yaml`` describes its additional fields."""

    about: str
    claims: tuple[str, ...] = ()
    before: Literal["hello", "process"] | None = None
    readmit: bool = True
    expect: Expectation = "anything"


class DialogueCase(Case, frozen=True, kw_only=True):
    """A case of the dialogue. ``dialogue.yaml`` describes its additional fields."""

    title: str = ""
    requirements: tuple[str, ...] = ()
    steps: tuple[DialogueStep, ...]
    claims: tuple[str, ...] = ()
    each: tuple[str, ...] = ("",)
    after: str = ""


class _Dialogue(Written, frozen=True):
    """The dialogue, with its machine and default configuration."""

    machine: MachineInfo
    config: dict[str, Any]
    cases: tuple[DialogueCase, ...]


def claimed_cases(capabilities: Capabilities) -> Iterator[DialogueCase]:
    """The cases to play with an implementation, each with its machine."""
    dialogue = read_data("dialogue.yaml", _Dialogue)
    hello = capabilities.hello
    known = {
        *(f"CPU Manager option {one}" for one in capabilities.cpu_options()),
        *(f"Topology Manager option {one}" for one in capabilities.topology_options()),
    }
    claims = {one for one in capabilities.claims if " option " not in one or one in known}
    names = {
        "static": int("CPU Manager policy static" in claims),
        "topology_policy": _fit_to_claims({}, hello).get("topologyManagerPolicy", "none"),
    }
    for written in dialogue.cases:
        for each in written.each:
            plain = expressions.expand(msgspec.to_builtins(written), {**names, "each": each})
            case = msgspec.convert(plain, DialogueCase)
            applies = releases.includes(case.kubernetes, capabilities.kubernetes)
            if applies and _hold(case.claims, claims):
                yield msgspec.structs.replace(
                    case,
                    machine=case.machine or dialogue.machine,
                    config=_fit_to_claims(merge_configs(dialogue.config, case.config), hello),
                    steps=tuple(step for step in case.steps if _hold(step.claims, claims)),
                )


def _hold(conditions: tuple[str, ...], claims: Collection[str]) -> bool:
    """Whether all claims are made, except those that begin with ``not``, which must not be made."""
    return all((one.removeprefix("not ") in claims) != one.startswith("not ") for one in conditions)


def _fit_to_claims(config: dict[str, Any], hello: Hello) -> dict[str, Any]:
    """Replaces unclaimed policies in the configuration with claimed ones."""
    made = dict(config)
    for name, field in POLICY_FIELDS.items():
        default = field.policies[0]
        claimed = getattr(hello.policies, field.manager) or (default,)
        wanted = made.get(name, default)
        if wanted in claimed:
            continue
        for left_out in (name, *_RESERVED_FOR.get(name, ())):
            made.pop(left_out, None)
        others = field.policies if wanted == default else reversed(field.policies)
        chosen = next((one for one in others if one in claimed), default)
        if chosen != default:
            made[name] = chosen
    return made
