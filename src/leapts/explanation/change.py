"""What changed between two forecasts of the same steps: the difference as a sum of parts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from leapts.data.frames import forecast_frame
from leapts.data.frequency import positions_of
from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.explanation.forced import Decisions, gate_of, recorded_decisions
from leapts.explanation.interventions import forced_predictor, predict_under
from leapts.explanation.ledger import Explanation
from leapts.forecasting.forecast import Forecast
from leapts.model import ScheduleTrace


@dataclass(frozen=True, eq=False, kw_only=True)
class Change:
    """The change of forecasts of the same steps, which is the sum of its parts: the causes, one after the other."""

    panel: Panel
    before: Float64[Tensor, "series steps"]
    after: Float64[Tensor, "series steps"]
    parts: dict[str, Float64[Tensor, "series steps"]]  # revised data, new data, schedule, gate, model

    def error(self) -> float:
        """Return the largest difference between a change and the sum of its parts, relative to the forecasts."""
        total = torch.stack(list(self.parts.values())).sum(0)
        return float((self.after - self.before - total).abs().max() / self.after.abs().max().clamp(min=1e-300))

    def to_frame(self) -> Any:
        """Build a frame with a row for each series and step, and a column for each part."""
        columns = {"before": self.before, "after": self.after, "change": self.after - self.before, **self.parts}
        shown = {name: values.numpy() for name, values in columns.items()}
        return forecast_frame(self.panel, shown, self.after.shape[1])

    def __str__(self) -> str:
        means = {name: part.mean(1).tolist() for name, part in self.parts.items()}
        lines = []
        for place, (name, old, new) in enumerate(zip(self.panel.series, self.before, self.after, strict=True)):
            parts = ", ".join(f"{part} {values[place]:+.3g}" for part, values in means.items() if values[place])
            lines.append(f"{name}: {old.mean():.4g} before, {new.mean():.4g} after on average. {parts or 'No change'}.")
        return "\n".join(lines)


def explain_change(before: Explanation, after: Explanation) -> Change:
    """Explain the change between two explained forecasts, over the steps that both have.

    Causes are changed one after the other: values that were revised, new values with the schedule of before, the
    schedule, the gate, and the rest of the model. Each part is the difference that its step makes.

    Raises:
        ConfigError: When the forecasts are not of the same series, or have no step in common.
    """
    old, new, of_old, of_new = before.data, after.data, before.predictor_for, after.predictor_for
    if old is None or new is None or of_old is None or of_new is None:
        raise ConfigError("the mean of several explanations has no change; explain the change of each")
    series = before.panel.series
    if set(series) != set(after.panel.series):
        raise ConfigError("before and after have different series; select the same ones")
    old, new = old.select(series), new.select(series)
    shift, h = _steps_between(old, new), before.values.shape[1]
    steps = min(h - shift, after.values.shape[1])
    if steps < 1:
        raise ConfigError(
            f"after starts {shift} steps later, so that the forecasts of {h} steps have no step in common"
        )
    revised = _revised(old, new, shift)
    first = of_old(revised).predict(of_old(revised).windows(revised), "leaps")
    predictor = of_old(new)
    windows = predictor.windows(new)
    free = predictor.predict(windows)
    kept, gate = free, gate_of(of_new(new).model)
    if first.trace is not None:
        decisions = _shifted(first.trace, shift)
        kept = forced_predictor(predictor, lambda _: decisions).predict(windows)
    gated = free
    if gate is not None and gate_of(predictor.model) not in (None, gate):
        gated = predict_under(predictor, {"gate": gate}, windows)

    def values(forecast: Forecast, start: int = 0) -> Tensor:
        return forecast.select(series).values[:, start : start + steps]

    order = [after.panel.series.index(name) for name in series]
    ends = [before.values[:, shift : shift + steps], values(first, shift), *map(values, (kept, free, gated))]
    ends.append(after.values[order, :steps])
    names = ("revised data", "new data", "schedule", "gate", "model")
    parts = {name: b - a for name, a, b in zip(names, ends, ends[1:], strict=False)}
    return Change(panel=new, before=ends[0], after=ends[-1], parts=parts)


def _steps_between(old: Panel, new: Panel) -> int:
    """Count the steps from the end of one panel to the end of another."""
    ends = [positions_of(panel.last(), old.first, old.freq, old.timezone) for panel in (old, new)]
    shifts = np.unique(ends[1] - ends[0])
    if old.freq != new.freq or len(shifts) > 1 or shifts[0] < 0:
        raise ConfigError("after must have the frequency of before, and every series end as many steps later")
    return int(shifts[0])


def _revised(old: Panel, new: Panel, shift: int) -> Panel:
    """Replace the values of a panel by those that a newer one has for the same timestamps."""
    values = old.values.clone()
    for end, new_end, length, new_length in zip(
        old.offsets[1:], new.offsets[1:] - shift, old.lengths, new.lengths - shift, strict=True
    ):
        shared = max(0, min(int(length), int(new_length)))
        values[end - shared : end] = new.values[new_end - shared : new_end]
    return replace(old, values=values, forward_filled=None)


def _shifted(trace: ScheduleTrace, shift: int) -> Decisions:
    """Return the decisions of a schedule for a forecast that starts some steps later; the last steps are free."""
    start, end = ((side - shift).clamp(min=0) for side in (trace.start, trace.start + trace.length))
    length = end - start
    order = (length == 0).long().argsort(dim=1, stable=True)  # leaps that have passed move to the end
    moved = replace(trace, length=length.gather(1, order), scale=trace.scale.gather(1, order))
    return recorded_decisions(moved, trace.length.shape[1] + (shift > 0))
