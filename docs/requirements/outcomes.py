"""Writes docs/requirements/outcomes.yaml: results of complete checks of the reference and kubelets.

    python docs/requirements/outcomes.py EVENTS...

Each file is the events.jsonl of a complete `numaproof check`. It replaces the earlier results of
its implementation and release. A requirement is listed if one of its cases failed; if named defects
caused the failure, they are listed too. Requirements that aren't listed passed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from numaproof.conformance.requirements import load_registry

TABLE = Path(__file__).with_name("outcomes.yaml")

Outcome = dict[str, Any]
"""A whole check: `of` and `version` identify the implementation, then the release and failures."""


def read(path: Path) -> Outcome:
    """Returns the result of each requirement from a file of events.

    Raises:
        SystemExit: the file is not from a complete check.
    """
    outcome: Outcome = {}
    deviates: dict[str, set[str]] = {}
    fails: set[str] = set()
    played: set[str] = set()
    ended = False
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        match event["event"]:
            case "campaign started":
                hello = event["implementation"]
                outcome |= {"of": hello["name"], "version": hello["version"]}
                outcome["kubernetes"] = event["kubernetes"]
            case "case finished":
                named = [*event.get("violated", ()), *event["requirements"]]
                if event["outcome"] != "unsupported":
                    played.update(named)
                if event["outcome"] == "expected failure":
                    for one in named:
                        deviates.setdefault(one, set()).add(event["defect"])
                elif event["outcome"] not in ("pass", "unsupported"):
                    fails.update(named)
            case "campaign ended":
                ended = event["complete"]
    if not ended:
        raise SystemExit(f"{path}: the check did not run to the end")
    outcome["played"] = len(played)
    tested = {one.id for one in load_registry().requirements if one.is_tested}
    outcome["unplayed"] = sorted(tested - played)
    outcome["deviates"] = {one: sorted(defects) for one, defects in sorted(deviates.items())}
    outcome["fails"] = sorted(fails)
    return outcome


def order(outcome: Outcome) -> tuple[str, list[int]]:
    """Sorts the reference first, then by release."""
    release = [int(part) for part in outcome["kubernetes"].split(".")]
    return ("" if outcome["of"] == "numaproof reference" else outcome["of"]), release


def main(paths: list[str]) -> None:
    """Updates the table with these checks."""
    known = yaml.safe_load(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else []
    found = {(one["of"], one["kubernetes"]): one for one in known}
    for outcome in map(read, map(Path, paths)):
        found[outcome["of"], outcome["kubernetes"]] = outcome
    text = yaml.safe_dump(sorted(found.values(), key=order), sort_keys=False, width=100)
    TABLE.write_text(f"# Written by docs/requirements/outcomes.py.\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
