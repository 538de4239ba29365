"""The message, case and command of a campaign's finding belong to the same failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.campaign.summary import FinishedUnits
from numaproof.protocol.campaign import ScenarioFailed, UnitFinished
from numaproof.protocol.events import CaseFinished, DivergenceFound
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from numaproof.campaign.planning import CampaignSpec

LIKE = "admit: containers.*.cpus differs"


def test_a_case_keeps_its_message_when_a_scenario_fails_alike(campaign_spec: CampaignSpec) -> None:
    configuration = campaign_spec.plan.configurations[0]
    finished = FinishedUnits(campaign_spec.plan)
    case = CaseFinished(
        at=0.0,
        case="static-one",
        title="One",
        machine="laptop-4c8t",
        outcome="fail",
        seconds=0.0,
        requirements=(),
        message="of the case",
        reproduce="numaproof replay static-one",
        signature=LIKE,
    )
    scenario = ScenarioFailed(0.0, 3, LIKE, "fail", "of the scenario")
    smallest = DivergenceFound(
        at=0.0,
        title="shrunk",
        outcome="fail",
        message="shrunk",
        machine=MachineInfo(),
        steps=(),
        file="findings/fuzz.yaml",
        reproduce="numaproof replay findings/fuzz.yaml",
        signature=LIKE,
    )
    units = (
        (case, UnitFinished(0.0, "x/cases/laptop-4c8t/0", configuration, {"fail": 1}, 0.0)),
        (scenario, UnitFinished(0.0, "x/seeds/0+9", configuration, {"fail": 1}, 0.0)),
        (smallest, UnitFinished(0.0, "x", configuration, {}, 0.0, signature=LIKE)),
    )
    for event, ended in units:
        finished.add([event], ended)
    (found,) = finished.summary().findings
    assert (found.subject, found.count) == ("static-one", 2)
    assert (found.message, found.reproduce) == ("of the case", "numaproof replay static-one")
    assert found.file is None
