"""The option names of version 0.1, which keep working for one more release."""

from __future__ import annotations

import click

_Renamed = dict[str, tuple[str, ...]]

_BASELINE: _Renamed = {"--as": ("--baseline",)}
_OUT: _Renamed = {"--to": ("--out",)}

RENAMED: dict[str, _Renamed] = {
    "board": {"--data": ("--out-data",)},
    "campaign": _BASELINE,
    "capture": _OUT,
    "check": _BASELINE,
    "diff": _BASELINE,
    "fuzz": {**_BASELINE, "--max-examples": ("--examples",), "--profile": ()},
    "promote": {**_BASELINE, "--into": ("--out",)},
    "reference": {"--documented": ("--baseline", "documented")},
    "replay": _BASELINE,
    "simulate": {"--documented": ("--baseline", "documented")},
    "tree": _OUT,
}
"""For each command, the words that replace an old option, usually its new name."""


def with_new_names(command: str, words: list[str]) -> list[str]:
    """Replaces old option names on a command line and prints a notice for each."""
    renamed = RENAMED.get(command, {})
    replaced: list[str] = []
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if name not in renamed or "--" in replaced:
            replaced.append(word)
            continue
        new = renamed[name]
        if not new:  # --profile, a choice of two values, became the flag --explore
            chosen = value if equals else next(waiting, "")
            new, equals, value = ("--explore",), "", ""
            replaced += new if chosen == "explore" else ()
        else:
            replaced += [f"{new[0]}{equals}{value}", *new[1:]]
        click.echo(
            f"numaproof: {name} is now {' '.join(new)}; 0.3 will drop the old name", err=True
        )
    return replaced
