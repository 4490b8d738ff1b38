"""Encode the contents of a report as compact JSON, and a trace as a table or a timeline.

The values of a series are stored as integers: multiples of a power of ten near a thousandth of its standard deviation,
counted from its median. Ends of intervals are multiples of ten times that, each counted from the end below it. A row of
values is one string, which the page splits only when the row is shown, so that a page of thousands of forecasts opens
at once.
"""

import json
import math
from collections.abc import Iterable
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from leapts import __version__
from leapts.data.frames import SUFFIXES, require_writable, write_frame
from leapts.data.frequency import Timestamps
from leapts.data.scaling import FLAT
from leapts.data.timezone import to_wall
from leapts.files import write_file
from leapts.forecasting.forecast import Forecast, Samples
from leapts.forecasting.trace_frame import leaps_of
from leapts.model import ScheduleTrace
from leapts.model.network import GatedFusion
from leapts.model.schedulers import SCALE_NAMES
from leapts.report.collect import (
    NEVER_SEEN,
    Cutoff,
    Floats,
    Integers,
    ReportContents,
    measure_errors,
    measure_schedules,
)

TRACE_SUFFIXES = (*SUFFIXES, ".json")
_MIN_PATHS, _MAX_PATHS, _MAX_PATH_VALUES = 20, 500, 4_000_000  # for the interval of a total
_RESOLUTION = 1000  # units in a standard deviation
_MIN_SPREAD = 1e-290  # a thousandth of a smaller one is zero
_MICROSECONDS_A_STEP = 1000  # a timeline shows a step of the horizon as a millisecond
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def encoded(contents: ReportContents) -> dict[str, Any]:
    """Encode the contents of a page as plain values."""
    fitted, panel, fusion = contents.fitted, contents.panel, contents.fitted.model.fusion
    longest = list(fusion.rollout.scheduler.grid.longest) if isinstance(fusion, GatedFusion) else []
    records, clocks = _series(contents)
    return {
        "version": __version__,
        "h": fitted.config.h,
        "lookback": fitted.config.input_size,
        "freq": str(panel.freq),
        "dates": panel.first.dtype.kind == "M",
        "scales": list(SCALE_NAMES),
        # The maximum length of a leap of each scale; the last leap allowed may be longer.
        "longest": [fitted.config.h] * (len(SCALE_NAMES) - len(longest)) + longest,
        "gate": round(fusion.gate.item(), 4) if isinstance(fusion, GatedFusion) else None,
        "levels": list(contents.levels),
        "heldOut": contents.held_out,
        "leftOut": contents.left_out,
        "afters": [cutoff.after for cutoff in contents.cutoffs],
        "series": records,
        "clocks": clocks,
        "model": _model(contents),
    }


def to_script_json(value: Any) -> str:
    """Write JSON that is safe inside a script element: it cannot end the element or start another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    # A lone surrogate in a name has no UTF-8 form; it is written as an escape.
    return text.encode("utf-8", "backslashreplace").decode()


def write_trace(trace: Any, path: str | Path, *, escape_formulas: bool = False) -> Path:
    """Write a trace as CSV or Parquet, or as a timeline if the name ends in `.json`.

    `escape_formulas` is as in `leapts.data.frames.csv_bytes`.

    Raises:
        DataError: When the name has another suffix, or the folder does not exist.
    """
    target = Path(path)
    require_writable(target, TRACE_SUFFIXES)
    if target.suffix != ".json":
        return write_frame(leaps_of(trace).to_native(), target, escape_formulas=escape_formulas)
    write_file(target, json.dumps(timeline(trace), ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return target


def timeline(trace: Any) -> dict[str, Any]:
    """Convert a trace to Chrome's trace format, for ui.perfetto.dev or chrome://tracing.

    Each cutoff is a process, each series a track, each leap a slice. Both viewers read the file locally.
    """
    rows = leaps_of(trace)
    id_col = rows.columns[0]
    cutoffs, series = dict[object, int](), dict[object, int]()
    names, slices = list[dict[str, Any]](), list[dict[str, Any]]()
    for row in rows.iter_rows(named=True):
        if row["cutoff"] not in cutoffs:
            names.append(_label("process_name", f"cutoff {row['cutoff']}", len(cutoffs) + 1, 0))
        process = cutoffs.setdefault(row["cutoff"], len(cutoffs) + 1)
        track = series.setdefault(row[id_col], len(series) + 1)
        if row["leap"] == 0:
            names.append(_label("thread_name", str(row[id_col]), process, track))
        numbers = {name: float(row[name]) for name in ("p_short", "p_mid", "p_long", "control", "temporal")}
        slices.append(
            {
                "name": f"{row['scale']} {row['length']}",
                "cat": row["scale"],
                "ph": "X",
                "pid": process,
                "tid": track,
                "ts": int(row["start"]) * _MICROSECONDS_A_STEP,
                "dur": int(row["length"]) * _MICROSECONDS_A_STEP,
                "args": {"leap": int(row["leap"]), **numbers},
            }
        )
    return {"traceEvents": [*names, *slices], "displayTimeUnit": "ms"}


def _label(kind: str, name: str, process: int, track: int) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}


class _Grid:
    """The unit of one series: a power of ten, counted from its median."""

    def __init__(self, values: Floats, deviation: float) -> None:
        size, spread = abs(float(values.mean())), float(values.std())
        if spread <= FLAT * size:  # a constant history, up to rounding; its forecast may vary
            spread = min(size or 1.0, deviation)
        self.digits = -math.floor(math.log10(max(spread, _MIN_SPREAD) / _RESOLUTION))
        self.unit = 10.0**-self.digits
        self.middle = round(float(np.median(values)) / self.unit)

    def row(self, values: Floats) -> str:
        return self.differences(values - self.middle * self.unit)

    def differences(self, values: Floats) -> str:
        return _integers(values / self.unit)

    def band_rows(self, ends: Floats) -> list[str]:
        """Encode the ends of intervals, [ends, h], from the lowest to the highest."""
        rising = np.rint(ends / (10 * self.unit))
        return [_integers(row) for row in np.diff(rising, axis=0, prepend=self.middle // 10)]


def _integers(values: Floats) -> str:
    return " ".join(map(str, np.rint(values).astype(np.int64).tolist()))


def _series(contents: ReportContents) -> tuple[list[dict[str, Any]], list[tuple[int, ...]]]:
    """Encode the series with their forecasts, and the clocks they share."""
    panel = contents.panel
    starts, values = panel.offsets.numpy(), panel.values.double().numpy()
    timestamps = _wall_clock(panel.timestamps(), panel.timezone)
    ahead = _wall_clock(panel.future_timestamps(contents.fitted.config.h), panel.timezone)
    spreads = contents.fitted.scaling(panel)[0].std.tolist()
    clocks: dict[tuple[int, ...], int] = {}
    grids, records = [], []
    for row, name in enumerate(panel.series):
        part = slice(starts[row], starts[row + 1])
        clock = _clock(np.concatenate([timestamps[part], ahead[row]]))
        grids.append(grid := _Grid(values[part], spreads[row]))
        unseen = int(contents.unseen[row])
        records.append(
            {
                "name": str(name),
                "digits": grid.digits,
                "middle": grid.middle,
                "values": grid.row(values[part]),
                "clock": clocks.setdefault(clock, len(clocks)),
                "unseen": None if unseen == NEVER_SEEN else unseen,
                **{field: [None] * len(contents.cutoffs) for field in ("final", "bands", "coarse", "leaps", "error")},
            }
        )
    for number, cutoff in enumerate(contents.cutoffs):
        _add_forecasts(records, grids, contents, cutoff, number)
    last = contents.cutoffs[-1]
    for row, total in zip(last.rows.tolist(), _totals(last.forecast, with_interval=bool(contents.levels)), strict=True):
        records[row]["total"] = total
    return records, list(clocks)


def _totals(forecast: Forecast, *, with_interval: bool) -> list[list[float | int]]:
    """Encode the total over the horizon of each series, and the ends of its 80 % interval by sample paths."""
    columns = [forecast.values.sum(1)]
    if with_interval:
        count = max(_MIN_PATHS, min(_MAX_PATHS, _MAX_PATH_VALUES // forecast.values.numel()))
        paths = forecast.sample_paths(Samples(count, 1)).sum(1)
        columns += [paths.quantile(share, dim=1) for share in (0.1, 0.9)]
    return [_shorts(ends, 6) for ends in zip(*(column.tolist() for column in columns), strict=True)]


def _add_forecasts(
    records: list[dict[str, Any]], grids: list[_Grid], contents: ReportContents, cutoff: Cutoff, number: int
) -> None:
    forecast = cutoff.forecast
    final, intervals = forecast.values.double().numpy(), contents.intervals(cutoff)
    # From the lowest end to the highest: 95 %, 80 %, 50 %, and then the upper ends.
    ends = [intervals[level][0] for level in reversed(contents.levels)] + [upper for _, upper in intervals.values()]
    coarse = None if forecast.coarse is None else forecast.coarse.double().numpy() - final
    errors = contents.absolute_errors(cutoff)
    leaps = None if forecast.trace is None else _leaps(forecast.trace)
    for place, row in enumerate(cutoff.rows.tolist()):
        record, grid = records[row], grids[row]
        record["final"][number] = grid.row(final[place])
        if ends:
            record["bands"][number] = grid.band_rows(np.stack([end[place] for end in ends]))
        if coarse is not None and leaps is not None:
            # Differences to the final forecast are small numbers, and short to write.
            record["coarse"][number] = grid.differences(coarse[place])
            record["leaps"][number] = leaps[place]
        if errors.shape[1]:
            record["error"][number] = _short(float(errors[place].mean()), 3)


def _leaps(trace: ScheduleTrace) -> list[str]:
    """Encode leaps: length, scale, probabilities in thousandths, control and temporal contribution."""
    offset = len(SCALE_NAMES) - len(trace.scale_names)
    chances = np.rint(trace.probabilities.numpy() * 1000).astype(np.int64).tolist()
    columns = [values.tolist() for values in (trace.length, trace.scale, trace.control, trace.temporal)]
    rows = []
    for count, *values in zip(trace.leaps.tolist(), chances, *columns, strict=True):
        leaps = [
            (length, scale + offset, *[0] * offset, *chance, _short(control, 4), _short(temporal, 4))
            for chance, length, scale, control, temporal in zip(*values, strict=True)
        ]
        rows.append(";".join(" ".join(map(str, leap)) for leap in leaps[:count]))
    return rows


def _model(contents: ReportContents) -> dict[str, Any]:
    fitted = contents.fitted
    report, config = fitted.report, fitted.config
    errors, schedules = measure_errors(contents), measure_schedules(contents)
    return {
        "loss": "pinball" if config.quantiles else "Huber",
        "errorBesideNaive": [report.combined_mae or report.best_validation, report.naive_mae],
        "parameters": sum(parameter.numel() for parameter in fitted.model.parameters()),
        "training": {
            "steps": report.steps,
            "best": report.best_step,
            "validation": report.best_validation,
            "stoppedEarly": report.stopped_early,
            "losses": [[step, _short(loss, 4)] for step, loss in report.losses],
            "validations": [[step, _short(score, 4)] for step, score in report.validations],
        },
        "autoConfig": [[one.option, str(one.value), one.reason] for one in fitted.auto_config],
        "options": [
            ["scheduling", config.scheduling.kind],
            ["state", config.state.kind],
            ["hidden size", str(config.hidden_size)],
            ["mixing between series", config.mixing.kind],
            ["window normalization", config.normalization],
            ["learning rate", f"{fitted.training.learning_rate:g}"],
            ["batch size", str(fitted.training.batch_size)],
            ["seed", str(fitted.training.random_seed)],
        ],
        "errors": errors
        and {
            "kind": errors.kind,
            "windows": errors.windows,
            "final": _shorts(errors.final),
            "coarse": _shorts(errors.coarse),
            "naive": _shorts(errors.naive),
            "coverage": [_shorts(errors.coverage[level]) for level in contents.levels],
            "wql": _short(errors.wql, 4) if errors.wql is not None and math.isfinite(errors.wql) else None,
            "calibration": [[level, _short(share, 4)] for level, share in errors.calibration.items()],
        },
        "schedules": schedules
        and {
            "leaps": list(schedules.leaps_of.values()),
            "steps": list(schedules.steps_of.values()),
            "counts": list(schedules.forecasts_with.items()),
            "control": _short(schedules.control, 4),
        },
    }


def _clock(timestamps: Integers) -> tuple[int, ...]:
    """Encode timestamps as the first one and runs of equal gaps: gap, count, gap, count ..."""
    runs = [(gap, len(list(run))) for gap, run in groupby(np.diff(timestamps).tolist())]
    return (int(timestamps[0]), *chain.from_iterable(runs))


def _wall_clock(timestamps: Timestamps, timezone: str | None) -> Integers:
    """Convert timestamps to milliseconds of local time; integer steps stay as they are."""
    if timestamps.dtype.kind != "M":
        return timestamps.astype(np.int64)
    return to_wall(timestamps.ravel(), timezone).reshape(timestamps.shape).astype("datetime64[ms]").astype(np.int64)


def _short(value: float, digits: int = 5) -> float | int:
    """Round to `digits` significant digits; whole numbers become integers."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _shorts(values: Iterable[float], digits: int = 4) -> list[float | int]:
    return [_short(value, digits) for value in values]
