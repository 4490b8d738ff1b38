"""A report's contents as compact JSON that is safe inside a page.

Numbers of a series are whole multiples of a power of ten near a thousandth of its deviation, counted from its middle:
fine enough to draw and to read off, and short to write. A row of them is one string, which the page splits only when it
is shown, so that a page of thousands of forecasts opens at once.
"""

import json
import math
from typing import Any

import numpy as np

from leapts import __version__
from leapts.core import ScheduleTrace
from leapts.core.fusion import GatedFusion
from leapts.core.scales import SCALE_NAMES
from leapts.data.frequency import Stamps, to_wall
from leapts.data.scaling import FLAT
from leapts.report.contents import NEVER_SEEN, Cutoff, Floats, Integers, ReportContents
from leapts.report.measures import absolute_errors, measure_errors, measure_schedules

_FINENESS = 1000  # parts of a deviation that can still be told apart
_LEAST_SPREAD = 1e-290  # of which a part can still be divided by
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def encoded(contents: ReportContents) -> dict[str, Any]:
    """All a page shows, as plain values."""
    fitted, panel = contents.fitted, contents.panel
    clocks: list[list[int]] = []
    return {
        "version": __version__,
        "h": contents.fitted.config.h,
        "lookback": fitted.config.input_size,
        "freq": str(panel.freq),
        "dates": panel.first.dtype.kind == "M",
        "scales": list(SCALE_NAMES),
        "longest": _longest(contents),
        "gate": None if contents.gate is None else round(contents.gate, 4),
        "levels": list(contents.widths),
        "widths": [
            [[_short(width) for width in group] for group in widths.tolist()] for widths in contents.widths.values()
        ],
        "heldOut": contents.held_out,
        "leftOut": contents.left_out,
        "afters": [cutoff.after for cutoff in contents.cutoffs],
        "series": _series(contents, clocks),
        "clocks": clocks,
        "model": _model(contents),
    }


def to_script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    # A lone surrogate in a name has no UTF-8; it stays readable as its escape.
    return text.encode("utf-8", "backslashreplace").decode()


def _longest(contents: ReportContents) -> list[int]:
    """How long a leap of each scale may be, unless it is the last one allowed."""
    fusion, h = contents.fitted.model.fusion, contents.fitted.config.h
    longest = list(fusion.rollout.scheduler.grid.longest) if isinstance(fusion, GatedFusion) else []
    return [h] * (len(SCALE_NAMES) - len(longest)) + longest


class _Grid:
    """The fineness of one series' numbers: multiples of a power of ten, counted from the middle."""

    def __init__(self, values: Floats, deviation: float) -> None:
        size, spread = abs(float(values.mean())), float(values.std())
        if spread <= FLAT * size:  # rounding noise: what is shown is constant, but its forecast need not be
            spread = min(size or 1.0, deviation)
        self.digits = -math.floor(math.log10(max(spread, _LEAST_SPREAD) / _FINENESS))
        self.unit = 10.0**-self.digits
        self.middle = round(float(np.median(values)) / self.unit)

    def row(self, values: Floats) -> str:
        return self.differences(values - self.middle * self.unit)

    def differences(self, values: Floats) -> str:
        return " ".join(map(str, np.rint(values / self.unit).astype(np.int64).tolist()))


def _series(contents: ReportContents, clocks: list[list[int]]) -> list[dict[str, Any]]:
    panel = contents.panel
    starts, values = panel.offsets.numpy(), panel.values.double().numpy()
    stamps = _wall_clock(panel.stamps(), panel.zone)
    ahead = _wall_clock(panel.future(contents.fitted.config.h), panel.zone)
    deviations = contents.fitted.scaler_for(panel).deviation.tolist()
    known_clocks: dict[tuple[int, ...], int] = {}
    grids, records = [], []
    for row, name in enumerate(panel.series):
        part = slice(starts[row], starts[row + 1])
        clock = _clock(np.concatenate([stamps[part], ahead[row]]))
        grid = _Grid(values[part], deviations[row])
        grids.append(grid)
        unseen = int(contents.unseen[row])
        records.append(
            {
                "name": str(name),
                "digits": grid.digits,
                "middle": grid.middle,
                "values": grid.row(values[part]),
                "clock": known_clocks.setdefault(clock, len(known_clocks)),
                "unseen": None if unseen == NEVER_SEEN else unseen,
                "group": int(contents.groups[row]),
                **{field: [None] * len(contents.cutoffs) for field in ("scale", "final", "coarse", "leaps", "error")},
            }
        )
    clocks.extend(list(clock) for clock in known_clocks)
    for number, cutoff in enumerate(contents.cutoffs):
        _add_forecasts(records, grids, contents, cutoff, number)
    return records


def _add_forecasts(
    records: list[dict[str, Any]], grids: list[_Grid], contents: ReportContents, cutoff: Cutoff, number: int
) -> None:
    forecast = cutoff.forecast
    final, scale = forecast.values.double().numpy(), forecast.scale.tolist()
    coarse = None if forecast.coarse is None else forecast.coarse.double().numpy() - final
    errors = absolute_errors(contents, cutoff)
    leaps = None if forecast.trace is None else _leaps(forecast.trace)
    for place, row in enumerate(cutoff.rows.tolist()):
        record, grid = records[row], grids[row]
        record["scale"][number] = _short(scale[place])
        record["final"][number] = grid.row(final[place])
        if coarse is not None and leaps is not None:
            # What the scheduling branch took away is small, and so is what it takes to write.
            record["coarse"][number] = grid.differences(coarse[place])
            record["leaps"][number] = leaps[place]
        if errors.shape[1]:
            record["error"][number] = _short(float(errors[place].mean()), 3)


def _leaps(trace: ScheduleTrace) -> list[str]:
    """For each forecast its leaps: length, scale, probabilities in thousandths, control and temporal contribution."""
    offset = len(SCALE_NAMES) - len(trace.scale_names)
    absent = [0] * offset
    chances = np.rint(trace.probabilities.numpy() * 1000).astype(np.int64).tolist()
    lengths, scales = trace.length.tolist(), trace.scale.tolist()
    control, temporal = trace.control.tolist(), trace.temporal.tolist()
    rows = []
    for row, count in enumerate(trace.leaps.tolist()):
        leaps = (
            (
                lengths[row][leap],
                scales[row][leap] + offset,
                *absent,
                *chances[row][leap],
                _short(control[row][leap], 4),
                _short(temporal[row][leap], 4),
            )
            for leap in range(count)
        )
        rows.append(";".join(" ".join(map(str, leap)) for leap in leaps))
    return rows


def _model(contents: ReportContents) -> dict[str, Any]:
    fitted = contents.fitted
    report, config = fitted.report, fitted.config
    errors, schedules = measure_errors(contents), measure_schedules(contents)
    return {
        "parameters": sum(parameter.numel() for parameter in fitted.model.parameters()),
        "training": {
            "steps": report.steps,
            "best": report.best_step,
            "validation": report.best_validation,
            "stoppedEarly": report.stopped_early,
            "losses": [[step, _short(loss, 4)] for step, loss in report.losses],
            "validations": [[step, _short(score, 4)] for step, score in report.validations],
        },
        "picks": [[pick.name, str(pick.value), pick.reason] for pick in fitted.picks],
        "options": [
            ["scheduling", config.scheduling.kind],
            ["state", config.state.kind],
            ["hidden size", str(config.hidden_size)],
            ["mixing between series", config.mixing.kind],
            ["normalisation of a window", config.normalization],
            ["learning rate", f"{fitted.training.learning_rate:g}"],
            ["batch size", str(fitted.training.batch_size)],
            ["seed", str(fitted.training.random_seed)],
        ],
        "errors": None
        if errors is None
        else {
            "kind": errors.kind,
            "windows": errors.windows,
            "final": [_short(value, 4) for value in errors.final],
            "coarse": [_short(value, 4) for value in errors.coarse],
            "lastValue": [_short(value, 4) for value in errors.last_value],
            "coverage": [[_short(value, 4) for value in errors.coverage[level]] for level in contents.widths],
        },
        "schedules": None
        if schedules is None
        else {
            "leaps": [schedules.leaps_of[name] for name in SCALE_NAMES],
            "steps": [schedules.steps_of[name] for name in SCALE_NAMES],
            "counts": list(schedules.forecasts_with.items()),
            "control": _short(schedules.control, 4),
        },
    }


def _clock(stamps: Integers) -> tuple[int, ...]:
    """Stamps as their first, then runs of equal distances: distance, how often, distance, how often ..."""
    gaps = np.diff(stamps)
    starts = np.flatnonzero(np.diff(gaps, prepend=gaps[0] - 1)) if len(gaps) else np.empty(0, dtype=np.int64)
    lengths = np.diff(starts, append=len(gaps))
    runs = np.stack([gaps[starts], lengths], axis=1) if len(gaps) else np.empty((0, 2), dtype=np.int64)
    return (int(stamps[0]), *runs.ravel().tolist())


def _wall_clock(stamps: Stamps, zone: str | None) -> Integers:
    """Milliseconds on the clock of the zone, or integer steps as they are."""
    if stamps.dtype.kind != "M":
        return stamps.astype(np.int64)
    return to_wall(stamps.ravel(), zone).reshape(stamps.shape).astype("datetime64[ms]").astype(np.int64)


def _short(value: float, digits: int = 5) -> float | int:
    """Rounded to so many significant digits, without a fraction where it has none."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
