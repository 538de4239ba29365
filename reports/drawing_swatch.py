"""How owners look in an SVG: a colour, with lines where colour alone is not enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.reports.ownership import Holder

HEIGHT = 18
"""Height of a swatch, in CSS pixels."""

LETTER = 6.9
"""Upper bound of a letter's average width, in CSS pixels."""

# Distinguishable with every common kind of colour blindness; dark text is legible on all of them.
_COLOURS = (
    "#56b4e9",
    "#f0a531",
    "#5fc9a4",
    "#f0e442",
    "#d68fb8",
    "#e58a66",
    "#9fb2ff",
    "#c3bb96",
)
_SHARED, _RESERVED, _OFFLINE = "#e4e7eb", "#aeb6c0", "#f4f4f4"


def swatch(holder: Holder, x: int, y: int, width: int) -> str:
    """The background of a cell: a colour, with lines where colour alone is not enough."""
    wide, high = width - 1, HEIGHT - 1
    size = f'x="{x}" y="{y}" width="{wide}" height="{high}" rx="2"'
    match holder.kind:
        case "container":
            return f'<rect {size} fill="{_colour(holder.number)}"/>'
        case "reserved":
            return f'<rect {size} fill="{_RESERVED}"/>{_hatch(x, y, wide, high, "#5c6773")}'
        case "offline":
            cross = f'<path d="M{x} {y}l{wide} {high}m0 {-high}l{-wide} {high}" stroke="#bbb"/>'
            return f'<rect {size} fill="{_OFFLINE}" stroke="#999" stroke-dasharray="2 2"/>{cross}'
        case "several":
            first, second = ([_colour(n) for n in holder.parts] + [_SHARED, _SHARED])[:2]
            return (
                f'<rect {size} fill="{first}"/>'
                f'<path d="M{x + wide} {y}v{high}h{-wide}z" fill="{second}"/>'
                f'<rect {size} fill="none" stroke="#c1121f" stroke-width="2"/>'
            )
        case "nobody":
            return f'<rect {size} fill="none" stroke="#d9822b" stroke-dasharray="3 2"/>'
        case _:
            return f'<rect {size} fill="{_SHARED}"/>'


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _hatch(x: int, y: int, wide: int, high: int, colour: str) -> str:
    lines = "".join(f"M{x + start} {y + high}l{high} {-high}" for start in range(0, wide - high, 6))
    return f'<path d="{lines}" stroke="{colour}" stroke-opacity=".55"/>'


def device_ground(healthy: bool, x: int, y: int, width: int) -> str:  # noqa: FBT001 - a fact
    """The background of a device without an owner."""
    dash = "" if healthy else ' stroke-dasharray="3 2"'
    return (
        f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{width - 2}" height="{HEIGHT - 2}" rx="2" '
        f'fill="none" stroke="currentColor" stroke-opacity=".5"{dash}/>'
    )


def memory_ground(share: str, x: float, y: float, width: float, height: float) -> str:
    """A segment of a memory bar: ``reserved``, ``allocated`` or ``free``; nothing if empty."""
    if not width:
        return ""
    fill = {"reserved": "#5c6773", "allocated": "#2f81d6"}.get(share)
    look = f'fill="{fill}"' if fill else 'fill="currentColor" fill-opacity=".12"'
    # However small, a segment that exists must be visible.
    return f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1.5):.1f}" height="{height}" {look}/>'
