"""Draws the picture of the concepts page: a made-up series, its coarse forecast, three leaps, the loop that makes them.

python tools/concepts_picture.py
"""

import math
from collections.abc import Callable
from pathlib import Path

from leapts.report.plots import HISTORY_COLOR, INK, MUTED, SCALE_COLORS

TARGET = Path(__file__).parents[1] / "docs" / "images" / "concepts.svg"
WIDTH, HEIGHT = 800, 430
NOW, END, START = 330, 770, 30  # where the history ends, the horizon ends, the history starts
LEAPS = ((330, 390, "short", "leap 1"), (390, 500, "mid", "leap 2"), (500, 770, "long", "leap 3"))
STEPS = (
    ("1. which scale?", "short, mid or long"),
    ("2. how far?", "a length inside that scale"),
    ("3. write", "that piece of the forecast"),
    ("4. take stock", "the piece moves the state"),
)


def main() -> None:
    """Draw and write."""
    TARGET.write_text(picture())


def picture() -> str:
    """The whole document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, DejaVu Sans, sans-serif" font-size="13">',
        "<title>How a forecast is made in leaps</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _curve(_truth, START, NOW, f'stroke="{HISTORY_COLOR}" stroke-width="2"'),
        _curve(_coarse, NOW, END, f'stroke="{MUTED}" stroke-width="2" stroke-dasharray="5 5"'),
        f'<path d="M{NOW} 20V235" stroke="{MUTED}"/>',
        _text((START + NOW) / 2, 24, "look-back", MUTED),
        _text((NOW + END) / 2, 24, "horizon", MUTED),
        _text(620, 58, "dashed: the coarse forecast, all at once", MUTED),
    ]
    for start, end, scale, name in LEAPS:
        colour = SCALE_COLORS[scale]
        parts += [
            _curve(_truth, start, end, f'stroke="{colour}" stroke-width="3.5"'),
            f'<rect x="{start + 1}" y="212" width="{end - start - 2}" height="24" rx="3" fill="{colour}"/>',
            _text((start + end) / 2, 228, scale if end - start > 50 else "", "#fff" if scale != "short" else INK),
            _text((start + end) / 2, 254, name, INK),
        ]
    for place, (head, rest) in enumerate(STEPS):
        left = START + place * 190
        parts += [
            f'<rect x="{left}" y="300" width="170" height="62" rx="6" fill="#f3f6f9" stroke="{MUTED}"/>',
            _text(left + 85, 326, head, INK, bold=True),
            _text(left + 85, 348, rest, MUTED, size=11.5),
        ]
        if place:
            parts.append(_arrow(f"M{left - 19} 331H{left - 3}", f"{left},331 {left - 8},327 {left - 8},335"))
    parts += [
        _arrow(f"M{START + 655} 363V392H{START + 85}V369", f"{START + 85},363 {START + 81},371 {START + 89},371"),
        _text(WIDTH / 2, 414, "again, from where this leap ended, until the horizon is full", MUTED),
        _text(START, 290, "for every leap:", INK, anchor="start"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _truth(x: float) -> float:
    """Quick swings that calm down after the look-back: short leaps first, a long one at the end."""
    calm = 1 / (1 + math.exp((x - 430) / 30))
    return 125 - 32 * math.sin(x / 46) - 30 * calm * math.sin(x / 9)


def _coarse(x: float) -> float:
    return 125 - 26 * math.sin(x / 46 + 0.25)


def _curve(height: Callable[[float], float], start: float, end: float, style: str) -> str:
    points = " ".join(f"{x:g},{height(x):.1f}" for x in range(int(start), int(end) + 1, 2))
    return f'<polyline points="{points}" fill="none" stroke-linejoin="round" {style}/>'


def _text(
    x: float, y: float, words: str, colour: str, *, bold: bool = False, size: float = 13, anchor: str = "middle"
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y}" fill="{colour}" text-anchor="{anchor}" font-size="{size:g}"{weight}>{words}</text>'


def _arrow(line: str, head: str) -> str:
    return f'<path d="{line}" fill="none" stroke="{MUTED}"/><polygon points="{head}" fill="{MUTED}"/>'


if __name__ == "__main__":
    main()
