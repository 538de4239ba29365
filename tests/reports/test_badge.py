from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from numaproof.reports.badge import badge
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent


def label(events: list[AnyEvent]) -> str:
    return ET.XML(badge(summarize(events))).get("aria-label", "")


def test_only_a_passed_run_has_a_green_badge(stream: MakeStream, run: MakeRun) -> None:
    green = "#1a7a43"
    assert green in badge(summarize(stream(run())))
    for events in (stream(run("fail")), stream(run())[:-1], stream()):
        assert green not in badge(summarize(events))


def test_markup_in_a_release_name_is_escaped(stream: MakeStream, run: MakeRun) -> None:
    assert "<b>" in label(stream(run(), start={"kubernetes": "<b>"}))
