"""A forecast as a picture: the history, the forecast with its intervals, and every leap as a coloured block.

The picture is plain SVG, made without any drawing library, so that it is small, sharp and readable by machines.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import narwhals as nw

from leapts.errors import DataError
from leapts.forecaster.tracing import leaps_of
from leapts.wording import listed, printable, quoted

WIDTH, HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 18, 64, 62
STRIP = 20  # the height of the row of leaps below the curves
LONGEST_NAME = 48

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
COLOURS = {"short": "#E69F00", "mid": "#009E73", "long": "#0072B2"}
OTHER_COLOUR = "#CC79A7"
INK, PAST, MUTED, GRID, PAPER = "#1a1a1a", "#80868b", "#5f6368", "#e4e6ea", "#ffffff"
_INNER_SHADE, _OUTER_SHADE = 0.45, 0.2
_INTERVAL = re.compile(r"-(lo|hi)-([0-9.]+)$")


@dataclass(frozen=True)
class _Leap:
    start: int
    end: int
    scale: str


@dataclass(frozen=True)
class _Series:
    """All that is drawn, as plain lists."""

    name: str
    time_name: str
    value_name: str
    stamps: list[str]  # of the history shown and of the forecast
    history: list[float]  # not numbers where they are missing
    point: list[float]
    bands: list[tuple[str, list[float], list[float]]]  # level, lower, upper; the widest first
    leaps: list[_Leap]


def forecast_svg(history: Any, forecast: Any, trace: Any, series: str | int, *, shown: int | None = None) -> str:
    """Draw one series' forecast with its leaps.

    Args:
        history: A long frame: series, stamp, value.
        forecast: The frame `LeapTS.predict` gave: series, stamp, forecast, and bounds of intervals if there are any.
        trace: The leaps that came with it.
        series: Whose forecast.
        shown: How many steps of history to show; by default two horizons.

    Returns:
        A whole SVG document.

    Raises:
        DataError: When one of the frames does not hold the series.
    """
    return _document(_collected(history, forecast, trace, series, shown))


def _collected(history: Any, forecast: Any, trace: Any, series: str | int, shown: int | None) -> _Series:
    past = rows_of(history, series, "the history")
    ahead = rows_of(forecast, series, "the forecast")
    leaps = rows_of(trace, series, "the trace")
    _, time_col, point_col = ahead.columns[:3]
    past = latest(past, shown or 2 * len(ahead))
    stamps = [*past.get_column(past.columns[1]).to_list(), *ahead.get_column(time_col).to_list()]
    return _Series(
        name=_shortened(str(series)),
        time_name=_shortened(time_col),
        value_name=_shortened(past.columns[2]),
        stamps=[_stamp(value) for value in stamps],
        history=[math.nan if value is None else value for value in past.get_column(past.columns[2]).to_list()],
        point=ahead.get_column(point_col).to_list(),
        bands=bands_of(ahead),
        leaps=[_Leap(row["start"], row["end"], row["scale"]) for row in leaps.iter_rows(named=True)],
    )


def rows_of(frame: Any, series: str | int, what: str) -> nw.DataFrame[Any]:
    """One series' rows of a long frame, or of a trace.

    Raises:
        DataError: When there are none.
    """
    table = leaps_of(frame)
    names = table.get_column(table.columns[0])
    rows: nw.DataFrame[Any] = table.filter(names == series)
    if len(rows) == 0:
        raise DataError(f"{what} has no series {quoted(series)}; it has {listed(names.unique().to_list())}")
    return rows


def latest(rows: nw.DataFrame[Any], count: int) -> nw.DataFrame[Any]:
    """The last rows of one series in the order of time, whatever order they come in."""
    return rows.sort(rows.columns[1]).tail(count)


def bands_of(forecast: nw.DataFrame[Any]) -> list[tuple[str, list[float], list[float]]]:
    """The intervals among a forecast's columns: level, lower and upper bounds; the widest first."""
    bounds: dict[str, dict[str, list[float]]] = {}
    for column in forecast.columns[3:]:
        if found := _INTERVAL.search(column):
            bounds.setdefault(found[2], {})[found[1]] = forecast.get_column(column).to_list()
    levels = sorted((level for level, sides in bounds.items() if len(sides) == 2), key=float, reverse=True)
    return [(level, bounds[level]["lo"], bounds[level]["hi"]) for level in levels]


class _Scale:
    """From steps and values to places on the paper."""

    def __init__(self, drawn: _Series) -> None:
        numbers = [*filter(math.isfinite, drawn.history), *drawn.point]
        for _, lower, upper in drawn.bands:
            numbers += [*lower, *upper]
        low, high = min(numbers), max(numbers)
        margin = 0.04 * (high - low) or max(abs(low), 1.0) / 2
        self.low, self.high = low - margin, high + margin
        self.ticks = _nice_ticks(self.low, self.high)
        self.past, self.ahead = len(drawn.history), len(drawn.point)
        self.bottom = HEIGHT - BOTTOM - STRIP

    def x(self, step: float) -> float:
        """Of a step: 0 is the first of the forecast, -1 the last of the history."""
        return LEFT + (step + self.past) / (self.past + self.ahead - 1) * (WIDTH - LEFT - RIGHT)

    def edge(self, step: int) -> float:
        """Half a step before, where a leap begins, and within the paper."""
        return min(self.x(step - 0.5), WIDTH - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high - value) / (self.high - self.low) * (self.bottom - TOP)

    def path(self, steps: Sequence[float], values: Sequence[float]) -> str:
        return " ".join(f"{self.x(step):.1f},{self.y(value):.1f}" for step, value in zip(steps, values, strict=True))


def _document(drawn: _Series) -> str:
    scale = _Scale(drawn)
    h = scale.ahead
    told = ", ".join(f"{leap.scale} over steps {leap.start + 1} to {leap.end}" for leap in drawn.leaps)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" '
        'font-size="12">',
        f"<title>{_text(drawn.name)}: {h} steps ahead in {_leaps_in_words(len(drawn.leaps))}</title>",
        f"<desc>The leaps: {_text(told)}.</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        *_heading(drawn),
        *_grid(scale, drawn.value_name),
        *_leap_blocks(drawn, scale),
        *_curves(drawn, scale),
        *_time_axis(drawn, scale),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _heading(drawn: _Series) -> list[str]:
    counted = f"{len(drawn.point)} steps ahead in {_leaps_in_words(len(drawn.leaps))}"
    parts = [
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600" fill="{INK}">{_text(drawn.name)}'
        f'<tspan dx="10" font-size="13" font-weight="400" fill="{MUTED}">{counted}</tspan></text>'
    ]
    x, y = float(LEFT), 46
    entries = [("history", "line", PAST), ("forecast", "line", INK)]
    entries += [(f"{level} %", f"band{number}", INK) for number, (level, _, _) in enumerate(reversed(drawn.bands))]
    # All three scales, taken or not: that a scale was not taken says something, too.
    entries += [(f"{name} leap", "block", colour) for name, colour in COLOURS.items()]
    for label, shape, colour in entries:
        if shape == "line":
            mark = f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2.2"/>'
        elif shape == "block":
            mark = f'<rect x="{x}" y="{y - 10}" width="18" height="11" rx="2" fill="{colour}"/>'
        else:
            shade = _INNER_SHADE if shape == "band0" else _OUTER_SHADE
            mark = f'<rect x="{x}" y="{y - 10}" width="18" height="11" fill="{colour}" fill-opacity="{shade}"/>'
        parts.append(f'{mark}<text x="{x + 24}" y="{y}" fill="{MUTED}">{escape(label)}</text>')
        x += 24 + 6.6 * len(label) + 18
    return parts


def _grid(scale: _Scale, value_name: str) -> list[str]:
    parts = []
    digits = max(0, -math.floor(math.log10(scale.ticks[1] - scale.ticks[0])))
    for tick in scale.ticks:
        y = scale.y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{MUTED}">{_number(tick, digits)}</text>'
        )
    middle = (TOP + scale.bottom) / 2
    parts.append(
        f'<text transform="translate(24 {middle:.1f}) rotate(-90)" text-anchor="middle" fill="{MUTED}">'
        f"{_text(value_name)}</text>"
    )
    return parts


def _leap_blocks(drawn: _Series, scale: _Scale) -> list[str]:
    """The row of leaps below the curves, and a line up from where each begins."""
    parts = [f'<text x="{LEFT}" y="{scale.bottom + STRIP - 5}" fill="{MUTED}">leaps</text>']
    for leap in drawn.leaps:
        colour = COLOURS.get(leap.scale, OTHER_COLOUR)
        left, right = scale.edge(leap.start), scale.edge(leap.end)
        parts.append(
            f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{TOP}" y2="{scale.bottom + STRIP}" stroke="{MUTED}" '
            f'stroke-width="0.8" stroke-dasharray="{"none" if leap.start == 0 else "2 3"}"/>'
        )
        parts.append(
            f'<rect x="{left + 0.75:.1f}" y="{scale.bottom + 3}" width="{max(right - left - 1.5, 0.5):.1f}" '
            f'height="{STRIP - 4}" rx="2" fill="{colour}"/>'
        )
        length = str(leap.end - leap.start)
        label = f"{leap.scale} {length}" if right - left > 6.6 * (len(leap.scale) + len(length) + 2) else length
        if right - left > 7.5 * len(length):
            ink = INK if leap.scale == "short" else PAPER
            parts.append(
                f'<text x="{(left + right) / 2:.1f}" y="{scale.bottom + STRIP - 5}" text-anchor="middle" '
                f'font-size="11" fill="{ink}">{_text(label)}</text>'
            )
    return parts


def _curves(drawn: _Series, scale: _Scale) -> list[str]:
    past, ahead = range(-scale.past, 0), list(map(float, range(scale.ahead)))
    parts = []
    for leap in drawn.leaps:
        colour = COLOURS.get(leap.scale, OTHER_COLOUR)
        for number, (level, low, high) in enumerate(drawn.bands):
            steps, lower = _stretch(low, leap)
            _, upper = _stretch(high, leap)
            outline = f"{scale.path(steps, lower)} {scale.path(steps[::-1], upper[::-1])}"
            shade = _INNER_SHADE if number == len(drawn.bands) - 1 else _OUTER_SHADE
            parts.append(
                f'<polygon points="{outline}" fill="{colour}" fill-opacity="{shade}"><title>{level} %</title></polygon>'
            )
    line = 'fill="none" stroke-linejoin="round" stroke-linecap="round"'
    pieces = _without_gaps(past, drawn.history)
    for steps, values in pieces:
        parts.append(f'<polyline points="{scale.path(steps, values)}" {line} stroke="{PAST}" stroke-width="1.6"/>')
    if pieces:
        join = scale.path([pieces[-1][0][-1], 0], [pieces[-1][1][-1], drawn.point[0]])
        parts.append(f'<polyline points="{join}" {line} stroke="{PAST}" stroke-width="1.2" stroke-dasharray="2 3"/>')
    steps, point = (ahead, drawn.point) if scale.ahead > 1 else _widened(drawn.point)
    parts.append(f'<polyline points="{scale.path(steps, point)}" {line} stroke="{INK}" stroke-width="2.4"/>')
    return parts


def _without_gaps(steps: Sequence[float], values: Sequence[float]) -> list[tuple[list[float], list[float]]]:
    """The pieces of a line between its missing values; a point alone twice, so that it is seen."""
    pieces = []
    pairs = zip(steps, values, strict=True)
    for is_known, group in groupby(pairs, key=lambda pair: math.isfinite(pair[1])):
        if is_known:
            piece = list(group)
            known_steps, known = zip(*(piece if len(piece) > 1 else 2 * piece), strict=True)
            pieces.append((list(known_steps), list(known)))
    return pieces


def _widened(values: list[float]) -> tuple[list[float], list[float]]:
    """A single step with the half before it, for a point alone would not be seen."""
    return [-0.5, 0.0], 2 * values


def _stretch(values: list[float], leap: _Leap) -> tuple[list[float], list[float]]:
    """The steps and values of a leap, from half-way to the leap before to half-way to the leap after."""
    if len(values) == 1:
        return _widened(values)
    steps: list[float] = list(range(leap.start, leap.end))
    part = values[leap.start : leap.end]
    if leap.start > 0:
        steps, part = [leap.start - 0.5, *steps], [(values[leap.start - 1] + values[leap.start]) / 2, *part]
    if leap.end < len(values):
        steps, part = [*steps, leap.end - 0.5], [*part, (values[leap.end - 1] + values[leap.end]) / 2]
    return steps, part


def _time_axis(drawn: _Series, scale: _Scale) -> list[str]:
    y = scale.bottom + STRIP + 6
    parts = [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="{MUTED}"/>']
    last = len(drawn.stamps) - 1
    room = 8 * max(len(stamp) for stamp in drawn.stamps)
    count = max(2, min(7, (WIDTH - LEFT - RIGHT) // room))
    for place in sorted({round(last * number / (count - 1)) for number in range(count)}):
        x = scale.x(place - scale.past)
        anchor = "start" if place == 0 else "end" if place == last else "middle"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}" stroke="{MUTED}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{y + 18}" text-anchor="{anchor}" fill="{MUTED}">{_text(drawn.stamps[place])}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{y + 36}" text-anchor="middle" fill="{MUTED}">{_text(drawn.time_name)}</text>'
    )
    return parts


def _nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, one, two or five times a power of ten apart."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _number(value: float, digits: int) -> str:
    if abs(value) >= 1e6 or digits > 6:
        return f"{value:.3g}"
    return f"{value:,.{digits}f}".replace("-0", "0") if value == 0 else f"{value:,.{digits}f}"


def _leaps_in_words(count: int) -> str:
    return "1 leap" if count == 1 else f"{count} leaps"


def _stamp(value: object) -> str:
    """A stamp without the parts that are zero."""
    return re.sub(r":00$", "", re.sub(r" 00:00(:00)?$", "", str(value)))


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _text(text: str) -> str:
    """Text that is safe inside the document, whatever a series is called."""
    return escape(printable(text))
