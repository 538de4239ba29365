"""Promoting findings to cases: their expectations, and refusals.

A row of `promotion.yaml` is a finding on a machine with two cores and two threads per core; its
steps expect anything by default. `wanted` and `bug` are the promotion's options and the faulty
implementation. `says` has the case or the error.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from builders.machines import plain, regular
from builders.tables import Table
from numaproof.conformance import promotion
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.conformance.promotion import PromotionError, PromotionOptions, promote
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import codec
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference
from numaproof.workdir.scratch import scratch_folder
from quality.catalogue import BUGS
from quality.suite import target as target_of

PROMOTIONS = Table(__file__, "promotion.yaml")
REGISTRY = load_registry()
REFERENCE = target_of(InProcess(lambda: Reference(follows_docs=True)))
BUG = {bug.id: bug for bug in BUGS}

FOUND = {
    "id": "fuzz",
    "title": "the shared pool was 0,2 and is 0 [nothing-is-lost]",
    "requirements": ["CPU-REMOVE-001"],
    "level": "invariants",
    "machine": plain(regular(cores=2)),
}
WANTED: dict[str, Any] = {
    "id": "static-whole-core",
    "title": None,
    "requirements": (),
    "kubernetes": NEWEST,
}


def good(case: Any, target: Any = REFERENCE) -> bool:
    """Returns whether a target passes a case."""
    with scratch_folder() as scratch:
        return Run(target, case, case.machine, None, scratch / "case").play().good


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", LEVELS)
def test_the_reference_passes_promoted_cases(seed: int, level: Level) -> None:
    scenario = seeded_scenario(seed, REFERENCE.capabilities)
    scenario = msgspec.structs.replace(scenario, requirements=("CPU-STATIC-001",))
    try:
        case = promote(scenario, PromotionOptions(**WANTED, level=level), REGISTRY, (), None).case
    except PromotionError as error:
        assert "name the --defect" in str(error)  # noqa: PT017 - the other outcome there is
        return
    (read,) = loading.parse(promotion.append_case("", case, "mine.yaml"), "mine.yaml")
    assert read == case
    assert good(read)


@PROMOTIONS
def test_a_finding_becomes_a_case_or_is_refused(
    row: dict[str, Any],
) -> None:
    steps = [{"expect": "anything", **step} for step in row["steps"]]
    plain = {**FOUND, **row.get("finding", {}), "steps": steps}
    text = yaml.safe_dump({"cases": [plain]}, sort_keys=False)
    (found,) = loading.parse(text, "finding.yaml")
    given = {**WANTED, **row.get("wanted", {})}
    wanted = PromotionOptions(**{**given, "requirements": tuple(given["requirements"])})
    bug = BUG[row["bug"]] if "bug" in row else None
    target = target_of(bug.implementation(), with_oracle=True) if bug else None
    try:
        case = promote(found, wanted, REGISTRY, ["static-taken"], target).case
    except (CaseError, PromotionError) as error:
        PROMOTIONS.check(row, str(error))
        return
    assert case.defect or good(case)
    assert not (bug and good(case, target))
    expected = [f"{step.verb}: {expectation_text(step.expect)}" for step in case.steps]
    said = {"title": case.title, "kubernetes": case.kubernetes, "level": case.level}
    gone = [one.start.removed_pods for one in case.steps if one.start and one.start.removed_pods]
    about = {"defect": case.defect, "gone": gone}
    PROMOTIONS.check(row, {**said, **{k: v for k, v in about.items() if v}, "expects": expected})


def expectation_text(expect: Any) -> str:
    """Returns the expectations as in a case file."""
    if isinstance(expect, str):
        return expect
    return yaml.safe_dump(
        codec.to_plain(expect), default_flow_style=True, width=10_000, sort_keys=False
    ).strip()


def test_an_unclaimed_level_is_refused() -> None:
    hello = msgspec.structs.replace(REFERENCE.hello, level="admission")
    lesser = type(REFERENCE)(REFERENCE.implementation, hello, NEWEST, "admission")
    case = seeded_scenario(0, REFERENCE.capabilities)
    wanted = PromotionOptions(**{**WANTED, "requirements": ("CPU-STATIC-001",)}, level="kubelet")
    with pytest.raises(PromotionError, match="claims level admission, so cases"):
        promote(case, wanted, REGISTRY, (), lesser)
