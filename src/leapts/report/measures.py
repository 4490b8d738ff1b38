"""How good the forecasts of a report are, and how they were made, in a few numbers for the model's page."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from leapts.core.scales import SCALE_NAMES
from leapts.intervals import Level
from leapts.report.contents import Cutoff, Floats, ReportContents

Kind = Literal["new", "held out", "learned"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Errors:
    """How far off forecasts are, in deviations of each series, by step of the horizon.

    Attributes:
        kind: What the windows are to the model: after the data of its fit, held out of it, or learned from.
        windows: How many there are.
        final: Mean absolute error of the forecast at each step.
        coarse: The same before the scheduling branch.
        last_value: The same for repeating the last value before the cutoff.
        coverage: For each level, the share of values inside the interval at each step.
    """

    kind: Kind
    windows: int
    final: Floats
    coarse: Floats
    last_value: Floats
    coverage: dict[Level, Floats]


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedules:
    """Which leaps were taken, over all forecasts shown.

    Attributes:
        leaps_of: How many leaps were of each scale.
        steps_of: How many steps of the horizon were filled at each scale.
        forecasts_with: How many forecasts took so many leaps.
        control: Mean share of the changes of state that the control signal brought about.
    """

    leaps_of: dict[str, int]
    steps_of: dict[str, int]
    forecasts_with: dict[int, int]
    control: float


class _Scored(NamedTuple):
    kind: str
    group: int
    final: Floats
    coarse: Floats
    last_value: Floats


def absolute_errors(contents: ReportContents, cutoff: Cutoff) -> Floats:
    """Of each forecast value whose actual is known, in deviations of its series: [its series, steps known]."""
    return _off(contents, cutoff, _array(cutoff.forecast.values))


def measure_errors(contents: ReportContents) -> Errors | None:
    """Errors on the fairest windows there are: new ones, else held-out ones, else those learned from.

    Returns:
        Nothing when no window is known to its end.
    """
    rows = list(_scored(contents))
    kinds: tuple[Kind, ...] = ("new", "held out", "learned")
    for kind in kinds:
        fair = [row for row in rows if row.kind == kind]
        if fair:
            final, groups = np.stack([row.final for row in fair]), [row.group for row in fair]
            return Errors(
                kind=kind,
                windows=len(fair),
                final=final.mean(0),
                coarse=np.mean([row.coarse for row in fair], axis=0),
                last_value=np.mean([row.last_value for row in fair], axis=0),
                coverage={level: (final <= widths[groups]).mean(0) for level, widths in contents.widths.items()},
            )
    return None


def measure_schedules(contents: ReportContents) -> Schedules | None:
    """Counts the leaps; nothing for a model without a scheduling branch."""
    traces = [cutoff.forecast.trace for cutoff in contents.cutoffs]
    leaps_of, steps_of = Counter[str](), Counter[str]()
    forecasts_with = Counter[int]()
    shares = []
    for trace in traces:
        if trace is None:
            return None
        taken = trace.taken
        for scale, length in zip(trace.scale[taken].tolist(), trace.length[taken].tolist(), strict=True):
            leaps_of[trace.scale_names[scale]] += 1
            steps_of[trace.scale_names[scale]] += length
        forecasts_with.update(trace.leaps.tolist())
        shares.append(trace.control_share[taken])
    return Schedules(
        leaps_of={name: leaps_of[name] for name in SCALE_NAMES},
        steps_of={name: steps_of[name] for name in SCALE_NAMES},
        forecasts_with={count: forecasts_with[count] for count in range(1, max(forecasts_with) + 1)},
        control=float(np.concatenate([share.numpy() for share in shares]).mean()),
    )


def _scored(contents: ReportContents) -> Iterator[_Scored]:
    """The windows that are known to their end."""
    for cutoff in contents.cutoffs:
        if cutoff.after < contents.fitted.config.h:
            continue
        forecast = cutoff.forecast
        final = _off(contents, cutoff, _array(forecast.values))
        coarse = final if forecast.coarse is None else _off(contents, cutoff, _array(forecast.coarse))
        last = _off(contents, cutoff, contents.last_value(cutoff)[:, None].repeat(contents.fitted.config.h, axis=1))
        for place, row in enumerate(cutoff.rows):
            kind, group = _kind(contents, int(row), cutoff.after), int(contents.groups[row])
            yield _Scored(kind, group, final[place], coarse[place], last[place])


def _kind(contents: ReportContents, row: int, after: int) -> Kind:
    unseen = int(contents.unseen[row])
    if after <= unseen:
        return "new"
    return "held out" if after - unseen <= contents.held_out else "learned"


def _off(contents: ReportContents, cutoff: Cutoff, values: Floats) -> Floats:
    actual = contents.actual(cutoff)
    off: Floats = np.abs(values[:, : actual.shape[1]] - actual) / _array(cutoff.forecast.scale)[:, None]
    return off


def _array(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64)
