"""Small machines and hand-written streams of events."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders import boards
from builders.machines import regular
from numaproof.protocol.events import (
    CaseFinished,
    DivergenceFound,
    Owner,
    Picture,
    ReportedCall,
    ReportedRequirement,
    RunEnded,
    RunStarted,
)
from numaproof.protocol.machine import HugePages, MachineInfo, UncoreCache
from numaproof.protocol.messages import Hello, Options, Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from numaproof.protocol.events import AnyEvent, Outcome

    Compare = Callable[[str, str], None]
    MakeMachine = Callable[..., MachineInfo]
    MakeStarted = Callable[..., RunStarted]
    MakeRun = Callable[..., CaseFinished]
    MakeStream = Callable[..., list[AnyEvent]]
    MakeDivergence = Callable[..., DivergenceFound]

GIB = 1 << 30

HELLO = Hello(
    protocol=1,
    name="kubelet",
    version="1.35.4",
    language="Go",
    kubernetes=("1.35",),
    level="kubelet",
    operations=(),
    policies=Policies(),
    options=Options(),
)

REQUIREMENTS = (
    ReportedRequirement("STATIC-1", "static policy", "CPUs are exclusive.", "Policies", "Static"),
    ReportedRequirement("STATIC-2", "static policy", "Requests are whole.", "Policies", "Static"),
    ReportedRequirement("NONE-1", "none policy", "No affinity is given.", "Policies", "None"),
)


def grid(
    sockets: int,
    nodes: int,
    cores: int,
    threads: int,
    *,
    cores_per_cache: int = 0,
    memory: int = GIB,
) -> MachineInfo:
    """A regular machine: sockets, nodes per socket, cores per node and threads per core."""
    return regular(
        sockets * nodes,
        cores,
        threads,
        sockets,
        cores_per_cache=cores_per_cache,
        cache=UncoreCache(0, 16 << 20, "Unified", 3),
        memory=memory,
        hugepages=(HugePages(2048, 4), HugePages(1048576, 0)),
        remote=21,
        ids_per_socket=True,
    )


@pytest.fixture
def make_machine() -> MakeMachine:
    return grid


def _run_start(**changes: Any) -> RunStarted:
    fields: dict[str, Any] = {
        "at": 0.0,
        "kind": "check",
        "numaproof": "0.2.0",
        "kubernetes": "1.35",
        "level": "kubelet",
        "command": "numaproof check --kubernetes 1.35",
        "total": 0,
        "machines": {"desktop": grid(1, 1, 4, 2), "server": grid(2, 1, 2, 2)},
        "requirements": REQUIREMENTS,
        "implementation": HELLO,
    }
    return RunStarted(**fields | changes)


@pytest.fixture
def run_start() -> MakeStarted:
    return _run_start


def _run(outcome: Outcome = "pass", **changes: Any) -> CaseFinished:
    fields: dict[str, Any] = {
        "at": 1.0,
        "case": "static.exclusive",
        "title": "Whole CPUs are exclusive",
        "machine": "desktop",
        "outcome": outcome,
        "seconds": 0.25,
        "requirements": ("STATIC-1",),
    }
    return CaseFinished(**fields | changes)


@pytest.fixture
def run() -> MakeRun:
    return _run


def _story(text: str = "CPU 0 is reserved", **changes: Any) -> CaseFinished:
    """A failed run with steps and pictures, with `text` everywhere it may appear."""
    fields: dict[str, Any] = {
        "message": text,
        "steps": (
            ReportedCall(
                "start", {"machine": {"num_cores": 8, "topology": [{}]}, "note": text}, {"ok": {}}
            ),
            ReportedCall(
                "admit",
                {"pod": {"metadata": {"name": text}}},
                {"ok": {"cpus": "0-1", "note": text}},
                (text,),
                {"ok": {"cpus": "1-2", "note": text}},
            ),
        ),
        "pictures": (
            Picture("Before", (Owner("reserved", "0"),), "0-7"),
            Picture("After", (Owner("reserved", "0"), Owner(f"web/{text}", "0-1")), "2-7"),
        ),
        "reproduce": "numaproof check --select static.exclusive --machine desktop",
    }
    return _run(**{"outcome": "fail"} | fields | changes)


@pytest.fixture
def story() -> MakeRun:
    return _story


@pytest.fixture
def stream() -> MakeStream:
    """Completes a stream with the given events and correct counts."""

    def make(*runs: AnyEvent, **changes: Any) -> list[AnyEvent]:
        outcomes: dict[str, int] = {}
        for one in runs:
            if isinstance(one, CaseFinished):
                outcomes[one.outcome] = outcomes.get(one.outcome, 0) + 1
        end: dict[str, Any] = {"at": 2.0, "complete": True, "outcomes": outcomes}
        begin = _run_start(**{"total": sum(outcomes.values()), **changes.pop("start", {})})
        return [begin, *runs, RunEnded(**end | changes)]

    return make


@pytest.fixture
def divergence() -> MakeDivergence:
    def make(**changes: Any) -> DivergenceFound:
        fields: dict[str, Any] = {
            "at": 1.5,
            "title": "Two containers share CPU 1",
            "outcome": "fail",
            "message": "CPU 1 is exclusive twice",
            "machine": grid(1, 1, 2, 1),
            "steps": (ReportedCall("admit", {}, {"ok": {}}, ("wrong",)),),
            "file": "failure-1.yaml",
            "reproduce": "numaproof replay failure-1.yaml",
        }
        return DivergenceFound(**fields | changes)

    return make


@pytest.fixture
def compare() -> Compare:
    """Asserts that a page has a text, or writes it if `NUMAPROOF_WRITE_PAGES` is set."""

    def check(name: str, text: str) -> None:
        page = Path(__file__).parent / "pages" / name
        if os.environ.get("NUMAPROOF_WRITE_PAGES"):
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
        assert text.splitlines() == page.read_text("utf-8").splitlines()

    return check


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with seventeen implementations."""
    return boards.write_board(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The installed Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, site: Path) -> Iterator[boards.Visit]:
    """A visit with a large window."""
    made = boards.Visit(browser, site, viewport={"width": 1400, "height": 900})
    yield made
    assert made.complaints == []
    made.context.close()
