"""Interventions: a forecast with some decisions changed and all others replayed.

`do={"scale": "long"}` changes every leap, `do={"scale": {1: "long"}}` leap 1 alone; leaps count from 0, as in the
trace. A changed length leaves the later leaps as they were, as far as they fit; steps that remain, and lengths of a
changed scale, are decided by the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import torch

from leapts.errors import ConfigError
from leapts.explanation.forced import Decisions, ForcedNetwork, gate_of, recorded_decisions
from leapts.forecasting.forecast import Forecast, ForecastWindows
from leapts.forecasting.predictor import Predictor
from leapts.messages import listed
from leapts.model import ScheduleTrace
from leapts.model.network import Record

_COLUMNS = ("scale", "length", "gate")  # of decisions
_KEYS = (*_COLUMNS, "schedule", "series")


def predict_under(
    predictor: Predictor,
    do: Mapping[str, Any],
    windows: ForecastWindows,
    record: Record = "nothing",
    *,
    quantiles: bool = True,
) -> Forecast:
    """Forecast with decisions changed; `do={}` changes nothing.

    Raises:
        ConfigError: When the model has no such decision.
        DataError: When the data have no such series.
    """
    if not do:
        return predictor.predict(windows, record, quantiles=quantiles)
    _require_known(do)
    if gate_of(predictor.model) is None:
        raise ConfigError("do: this model has no scheduling branch, so there is no decision to change")
    given, series = do.get("series"), windows.panel.series
    chosen = series if given is None else (given,) if isinstance(given, str) else tuple(given)
    windows.panel.select(chosen)  # refuses names that are not there
    rows, start = torch.tensor([name in chosen for name in series]), 0

    def force(trace: ScheduleTrace) -> Decisions:
        nonlocal start  # the network runs some rows after the other
        changed, own = changed_decisions(do, trace), rows[start : start + len(trace.length)]
        start += len(own)
        return torch.where(own[:, None, None], changed, recorded_decisions(trace, changed.shape[1]))

    found = forced_predictor(predictor, force).predict(windows, record, quantiles=quantiles)
    if bool(rows.all()):
        return found
    # Series are forecast together only by the encoder, which no decision changes.
    plain = predictor.predict(windows, record, quantiles=quantiles)
    values = torch.where(rows[:, None], found.values, plain.values)
    return replace(found, values=values, quantiles=torch.where(rows[:, None, None], found.quantiles, plain.quantiles))


def forced_predictor(predictor: Predictor, force: Callable[[ScheduleTrace], Decisions]) -> Predictor:
    """Return a predictor whose decisions are forced, from the schedule it has without."""
    network: Any = ForcedNetwork(predictor.model, force)
    return replace(predictor, model=network)


def changed_decisions(do: Mapping[str, Any], trace: ScheduleTrace) -> Decisions:
    """Change the recorded decisions of all rows."""
    schedule = [(None, one) if isinstance(one, Real) else tuple(one) for one in do.get("schedule") or ()]
    columns = {key: _by_leap(key, do.get(key)) for key in _COLUMNS}
    columns["scale"] |= {leap: scale for leap, (scale, _) in enumerate(schedule) if scale is not None}
    columns["length"] |= {leap: length for leap, (_, length) in enumerate(schedule)}
    every = columns["length"].get(None)
    wanted = max(len(schedule), 0 if every is None else -(-int(trace.length[0].sum()) // _length(every)))
    decisions = recorded_decisions(trace, wanted)
    if schedule:
        decisions[..., :2] = torch.nan
    known = {"scale": lambda name: _scale(name, trace), "length": _length, "gate": _gate}
    for column, (key, values) in enumerate(columns.items()):
        for leap, value in values.items():
            if leap is not None and leap >= decisions.shape[1]:
                raise ConfigError(f"do: there is no leap {leap}; the model takes at most {decisions.shape[1]}, from 0")
            place = slice(None) if leap is None else leap
            decisions[:, place, column] = known[key](value)
            if key == "scale":  # lengths that are forced too follow
                decisions[:, place, 1] = torch.nan
    return decisions


def _require_known(do: Mapping[str, Any]) -> None:
    for key in do:
        if key not in _KEYS:
            raise ConfigError(f"do={{{key!r}: ...}}: there is nothing of that name to change; {listed(_KEYS)} are")
    if "schedule" in do and ("scale" in do or "length" in do):
        raise ConfigError("do={'schedule': ...} sets scales and lengths already; leave 'scale' and 'length' out")


def _by_leap(key: str, value: Any) -> dict[int | None, Any]:
    """Read values by leap; None stands for every leap."""
    if not isinstance(value, Mapping):
        return {} if value is None else {None: value}
    if not all(str(leap).isdecimal() for leap in value):
        raise ConfigError(f"do={{{key!r}: {dict(value)!r}}}: leaps are whole numbers from 0")
    return {int(leap): one for leap, one in value.items()}


def _scale(name: Any, trace: ScheduleTrace) -> int:
    if name not in trace.scale_names:
        raise ConfigError(f"do: there is no scale {name!r}; this model has {listed(trace.scale_names)}")
    return trace.scale_names.index(name)


def _length(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"do: a leap has the length {value!r}; give a whole number from 1")
    return value


def _gate(value: Any) -> float:
    if not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise ConfigError(f"do={{'gate': {value!r}}}: a gate is between 0 and 1")
    return float(value)
