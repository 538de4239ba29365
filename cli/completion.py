"""Shell completion, as click writes it, with descriptions that keep their commas."""

from __future__ import annotations

from typing import ClassVar

from click.shell_completion import FishComplete, add_completion_class


class WholeFishComplete(FishComplete):
    """Completion for fish that splits each line at its first comma only.

    click's own script splits at every comma, so descriptions and values lose their ends.
    """

    source_template: ClassVar[str] = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


def register() -> None:
    """Lets click use these."""
    add_completion_class(WholeFishComplete)
