"""What to do next: the first thing to fix, or what a healthy program is ready for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.inputs.plurals import plural
from numaproof.inputs.shell_words import quoted
from numaproof.protocol.events import headline
from numaproof.protocol.messages import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.protocol.diagnosis import Exchange
    from numaproof.protocol.events import Said
    from numaproof.protocol.messages import Hello, Level

MOST = 7
"""Things to fix that are listed; what is behind the first ones mostly goes with them."""


def next_steps(
    command: str,
    exchanges: Sequence[Exchange],
    hello: Hello | None,
    agreed: Level,
) -> tuple[Said, ...]:
    """What to do next, the most urgent first; `agreed` is the level at which no answer differed."""
    wrong = _wrong(exchanges)
    if wrong:
        listed: list[Said] = [*wrong[:MOST]]
        if len(wrong) > MOST:
            listed.append(f"{len(wrong) - MOST} more stand in the transcript above")
        return (*listed, f"run it again: numaproof doctor {_quoted(command)}")
    return (*_ready(command, hello), *_claimable(hello, agreed))


def _wrong(exchanges: Sequence[Exchange]) -> list[Said]:
    """Every mistake once, in the order in which they came, with where it came first."""
    counts = Counter(
        finding.cause for one in exchanges for finding in one.findings if not finding.advice
    )
    found: dict[str, Said] = {}
    for one in exchanges:
        for finding in one.findings:
            if finding.advice or finding.cause in found:
                continue
            more = counts[finding.cause] - 1
            again = f" (and {plural(more, 'more time')})" if more else ""
            right = f" → {finding.right}" if finding.right else ""
            shown = f"shown by {one.step} ({one.number}), after {finding.after}"
            where = shown if finding.after else f"{one.step} ({one.number})"
            lines = finding.log.strip().splitlines()
            said = f"; its standard error ends with: {lines[-1].strip()[:200]}" if lines else ""
            what = f"{where}: {headline(finding.said)}{said}{again}{right}"
            sides = finding.said
            found[finding.cause] = what if isinstance(sides, str) else replace(sides, what=what)
    return list(found.values())


def _ready(command: str, hello: Hello | None) -> Iterator[str]:
    given = f"--implementation {_quoted(command)}"
    operations = hello.operations if hello else ()
    yield f"run the table of cases: numaproof check {given}"
    if "start" in operations:
        yield f"generate node lifetimes: numaproof fuzz {given} --max-time 5m"
    elif "merge" in operations or "assign" in operations:
        yield f"generate calls: numaproof fuzz {given} --max-time 5m"
    else:
        yield f"generate machines: numaproof diff --kind tree --right {_quoted(command)}"


def _quoted(command: str) -> str:
    """The command as one word of a shell, in double quotes as the documentation has them."""
    plain = command.isprintable() and not set(command) & set('"$`\\!')
    return f'"{command}"' if plain else quoted((command,))


def _claimable(hello: Hello | None, agreed: Level) -> tuple[str, ...]:
    """The next level, if nothing in the dialogue speaks against it."""
    if hello is None or hello.level not in LEVELS[:2] or "start" not in hello.operations:
        return ()
    level = LEVELS[LEVELS.index(hello.level) + 1]
    if LEVELS.index(agreed) < LEVELS.index(level):
        return ()
    claim = f'try `"level": "{level}"` in `hello`, and run it again'
    return (f"every answer here was as documented: {claim}",)
