"""A board with seventeen implementations, and a browser window on its pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.conformance.requirements import load_registry
from numaproof.reports.board.context import RunContext
from numaproof.reports.board.data import (
    Author,
    BoardFinding,
    FoundIn,
    MachineSize,
    RunData,
    encode_board_data,
)
from numaproof.reports.board.reading import read
from numaproof.reports.board.site import board_of, write_site

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from numaproof.protocol.events import ReportedRequirement

CELL = "CPU-STATIC-002/pinner"
FOUND = "takes half a core, <b>if</b> asked for one"


def pinner(version: str = "1.1", **more: Any) -> RunData:
    """Events of an allocator that fails, follows rules of its own, and passes."""
    told = (
        BoardFinding(
            kind="finding",
            outcome="known failure",
            title="Whole CPUs are exclusive",
            signatures={"admit: cpus differs": 2},
            reason=FOUND,
            message="containers.app.cpus: expected 2-3, got 2",
            case="static-whole",
            machine="laptop-4c8t",
            text="cases:\n- id: static-whole\n",
            requirements=("CPU-STATIC-002",),
            cases=(
                FoundIn(
                    "static-whole",
                    "known failure",
                    ("dgx-spark-gb10", "laptop-4c8t"),
                    ("CPU-STATIC-002",),
                ),
            ),
        ),
        BoardFinding(
            kind="failed",
            outcome="crash",
            title="Memory is pinned",
            signatures={"crash at admit: exit code 2": 1},
            cases=(FoundIn("memory-pinned", "crash", ("laptop-4c8t",), ("MEM-STATIC-001",)),),
        ),
        BoardFinding(
            kind="expected",
            outcome="expected failure",
            title="A core is taken as a whole",
            signatures={"invariant exclusive-to-one": 1},
            reason="free-core-by-average",
            cases=(
                FoundIn("free-cores", "expected failure", ("laptop-4c8t",), ("CPU-STATIC-004",)),
            ),
        ),
    )
    fields: dict[str, Any] = {
        "kind": "check",
        "author": Author("pinner", version, "Go", ("start", "admit"), "https://pinner.example/"),
        "kubernetes": "1.36",
        "level": "placement",
        "numaproof": "0.2.0",
        "outcomes": {"pass": 200, "known failure": 2, "crash": 1, "expected failure": 1},
        "requirements": {
            "CPU-STATIC-001": {"pass": 9},
            "CPU-STATIC-002": {"pass": 7, "known failure": 2},
            "CPU-STATIC-003": {"unsupported": 7},
            "CPU-STATIC-004": {"expected failure": 1},
            "MEM-STATIC-001": {"crash": 1},
        },
        "machines": {"laptop-4c8t": {"pass": 100, "crash": 1}, "dgx-spark-gb10": {"pass": 100}},
        "findings": told,
    }
    return RunData(**fields | more)


def reader(name: str, **discovery: Any) -> RunData:
    """Events of a program that discovers machines, one of them by a rule of its own."""
    machines = {f"machine-{number}": {"pass": 4} for number in range(60)}
    machines["machine-7"] = {"pass": 3, "known failure": 1}
    cites = ("DISCOVERY-002",)
    where = FoundIn("discover-cores", "known failure", ("machine-7",), cites, discovers=True)
    return RunData(
        kind="check",
        author=Author(name, "2.0", "C", ("discover",)),
        kubernetes="1.37",
        level="invariants",
        numaproof="0.2.0",
        outcomes={"pass": 239, "known failure": 1, **discovery},
        requirements={"DISCOVERY-002": {"pass": 59, "known failure": 1}},
        machines=machines,
        discovery=machines,
        sizes={name: MachineSize(8, 2, 1) for name in machines},
        findings=(
            BoardFinding(
                kind="own rules",
                outcome="known failure",
                title="Cores are discovered",
                signatures={"discover: cores differs": 1},
                reason="counts no offline CPUs",
                cases=(where,),
            ),
        ),
    )


def registry() -> tuple[ReportedRequirement, ...]:
    """The requirements, as in events."""
    return tuple(one.event() for one in load_registry().requirements)


def write_board(folder: Path) -> Path:
    """Writes the board's site into a folder, using board data."""
    runs = [pinner(), pinner("1.0", requirements={"CPU-STATIC-001": {"fail": 1}})]
    runs += [reader(f"a rather long name of a reader {number}") for number in range(16)]
    (folder / "runs.board.json").write_bytes(encode_board_data(runs))
    board = board_of(read([folder / "runs.board.json"], RunContext(registry(), lambda _: "")))
    write_site(board, folder / "site")
    return folder / "site"


class Visit:
    """A browser window on the site that records script errors and loaded files."""

    def __init__(self, browser: Browser, site: Path, **settings: Any) -> None:
        self.site = site
        self.context = browser.new_context(**settings)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requested_urls: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requested_urls.append(request.url))

    def open(self, name: str) -> Page:
        self.page.goto(self.address(name))
        return self.page

    def address(self, name: str) -> str:
        """Returns the address of a page with an unencoded query and fragment."""
        path, *rest = re.split("(?=[?#])", name, maxsplit=1)
        return (self.site / path).as_uri() + "".join(rest)

    def cell(self, name: str) -> Locator:
        return self.page.locator(f'[id="{name}"]')
