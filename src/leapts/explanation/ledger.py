"""The ledger of a forecast: every value as an exact sum of parts, and what each part depends on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from jaxtyping import Float64
from torch import Tensor

from leapts.data.frames import forecast_frame, long_frame
from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.explanation.uncertainty import leap_table
from leapts.explanation.words import in_words
from leapts.forecasting.forecast import Forecast
from leapts.forecasting.predictor import Predictor

TOLERANCE = 1e-5  # of the size of a series
SEGMENTS = 8
_ORDER = ("level", "linear path", "simple forecasts", "coarse forecast")


class Ledger(NamedTuple):
    """The parts of forecasts, in the units of the data.

    `leap 0` is gate x what the first leap wrote. A sensitivity is the change of the total of a part, over the horizon,
    for a rise of one past value by one: the exact Jacobian, with the schedule as it is.
    """

    names: tuple[str, ...]
    parts: Float64[Tensor, "series parts h"]
    sensitivity: Float64[Tensor, "series parts lookback"]  # to the history of the series itself

    def rearranged(self, names: Sequence[str], lookback: int) -> "Ledger":
        """Take parts by name; one that is not there is zero, and so is a history that is longer."""
        places = [self.names.index(name) if name in self.names else len(self.names) for name in names]
        parts, sensitivity = (F.pad(tensor, (0, 0, 0, 1))[:, places] for tensor in self[1:])
        return Ledger(tuple(names), parts, F.pad(sensitivity, (lookback - sensitivity.shape[2], 0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """Forecasts as exact sums of parts."""

    panel: Panel
    alias: str
    ledger: Ledger
    values: Float64[Tensor, "series h"]  # the forecasts
    across: Float64[Tensor, "series series"] | None  # sensitivity of each total to each series, if series are mixed
    history: Float64[Tensor, "series lookback"]  # NaN where nothing is known
    gate: float | None  # weight of the leaps; none without a scheduling branch
    forecast: Forecast | None  # none of a mean of explanations
    # For `explain_change`: the data that was explained, and the predictor that the model has for other data.
    data: Panel | None
    predictor_for: Callable[[Panel], Predictor] | None

    @cached_property
    def size(self) -> Float64[Tensor, " series"]:
        """Size of the numbers of each series, which errors are compared with."""
        sizes = torch.cat([self.ledger.parts.flatten(1), self.history.nan_to_num(0)], 1).abs()
        return sizes.amax(1).clamp(min=1e-300)

    def error(self) -> float:
        """Return the largest difference between a forecast and the sum of its parts, relative to the series."""
        return float(((self.ledger.parts.sum(1) - self.values).abs().amax(1) / self.size).max())

    def check(self) -> bool:
        """Whether all forecasts are the sums of their parts, to a relative error of 1e-5."""
        return self.error() <= TOLERANCE

    def part(self, name: str) -> Float64[Tensor, "series h"]:
        """Return one part of all forecasts; zero if there is none of that name."""
        return self.ledger.rearranged([name], self.history.shape[1]).parts[:, 0]

    @cached_property
    def leaps_share(self) -> Float64[Tensor, " series"]:
        """Share of the leaps in what the forecast adds to the level, from 0 to 1."""
        sizes = self.ledger.parts.abs().sum(2)
        is_leap = torch.tensor([name.startswith("leap ") for name in self.ledger.names])
        is_added = torch.tensor([name != "level" for name in self.ledger.names])
        return sizes[:, is_leap].sum(1) / sizes[:, is_added].sum(1).clamp(min=1e-300)

    @cached_property
    def effects(self) -> Float64[Tensor, "series parts lookback"]:
        """Sensitivity times the difference of each value from the mean of its look-back."""
        centered = self.history - self.history.nanmean(1, keepdim=True)
        return self.ledger.sensitivity * centered.nan_to_num(0.0).unsqueeze(1)

    def to_frame(self) -> Any:
        """Build a frame with a row for each series and step, and a column for each part."""
        parts = dict(zip(self.ledger.names, self.ledger.parts.unbind(1), strict=True))
        columns = {name: values.numpy() for name, values in {self.alias: self.values, **parts}.items()}
        return forecast_frame(self.panel, columns, self.values.shape[1])

    def leaps(self) -> Any:
        """Build a frame with a row for each leap: its total, its share of all leaps, and how sure the model was.

        `entropy` is that of the choice of scale, in bits; `width_80` the mean width of the 80 % interval. Control and
        temporal share are shares of the change of state after the leap, not of the forecast.
        """
        return self._frame(*leap_table(self))

    def sensitivities(self, segments: int = SEGMENTS) -> Any:
        """Build a frame with a row for each part and segment of the history.

        `sensitivity` is the change of the part's total if all values of the segment were higher by one; `effect` is
        that of the differences of the values from the mean of the look-back. Steps count back from the cutoff.
        """
        bounds, steps = self._segments(segments), self.history.shape[1]
        slopes, effects = (
            torch.stack([x[..., a:b].sum(2) for a, b in bounds], 2) for x in (self.ledger.sensitivity, self.effects)
        )
        series, part, segment = (index.reshape(-1) for index in np.indices(slopes.shape))
        first, last = (np.array(ends)[segment] for ends in zip(*bounds, strict=True))
        columns = {"part": np.array(self.ledger.names)[part], "from": steps - first, "to": steps - last + 1}
        columns |= {"sensitivity": slopes.numpy().reshape(-1), "effect": effects.numpy().reshape(-1)}
        return self._frame(series, columns)

    def to_dict(self) -> list[dict[str, Any]]:
        """Convert to plain values, one mapping for each series."""
        row, columns = leap_table(self)
        bounds, steps = self._segments(SEGMENTS), self.history.shape[1]
        slopes = torch.stack([self.ledger.sensitivity[..., a:b].sum(2) for a, b in bounds], 2)
        found = []
        for place, name in enumerate(self.panel.series):
            mixed = None if self.across is None else self.across[place].tolist()
            found.append(
                {
                    "series": name,
                    "summary": in_words(self, place),
                    "gate": self.gate,
                    "leaps_share": float(self.leaps_share[place]),
                    "forecast": self.values[place].tolist(),
                    "parts": dict(zip(self.ledger.names, self.ledger.parts[place].tolist(), strict=True)),
                    "leaps": [
                        {key: column[at].item() for key, column in columns.items()}
                        for at in np.flatnonzero(row == place)
                    ],
                    "segments": [{"from": steps - a, "to": steps - b + 1} for a, b in bounds],
                    "sensitivity": dict(zip(self.ledger.names, slopes[place].tolist(), strict=True)),
                    "other_series": mixed and dict(zip(map(str, self.panel.series), mixed, strict=True)),
                    "relative_error": self.error(),
                }
            )
        return found

    def to_json(self) -> str:
        """Encode as JSON text, with the fields of `to_dict`."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def summary(self, series: str | int | None = None) -> str:
        """Describe the forecast of one series in plain words; by default of the first."""
        self.panel.select([] if series is None else [series])  # refuses a name that is not there
        return in_words(self, 0 if series is None else self.panel.series.index(series))

    def __str__(self) -> str:
        return "\n".join(in_words(self, place) for place in range(len(self.panel)))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @staticmethod
    def mean(explanations: "Sequence[Explanation]") -> "Explanation":
        """Explain the mean of several forecasts: the mean of their parts; a part that one lacks is zero there."""
        first = max(explanations, key=lambda one: one.history.shape[1])
        if any(
            (one.panel.series, one.values.shape) != (first.panel.series, first.values.shape) for one in explanations
        ):
            raise ConfigError("explanations have a mean if they are of the same series and steps")
        names = sorted({name for one in explanations for name in one.ledger.names}, key=_rank)
        ledgers = [one.ledger.rearranged(names, first.history.shape[1]) for one in explanations]
        gates = [one.gate for one in explanations if one.gate is not None]
        return replace(
            first,
            ledger=Ledger(
                tuple(names),
                torch.stack([ledger.parts for ledger in ledgers]).mean(0),
                torch.stack([ledger.sensitivity for ledger in ledgers]).mean(0),
            ),
            values=torch.stack([one.values for one in explanations]).mean(0),
            across=None,
            gate=sum(gates) / len(gates) if gates else None,
            forecast=None,
            data=None,
        )

    def _segments(self, count: int) -> list[tuple[int, int]]:
        steps = self.history.shape[1]
        return list(pairwise(sorted({round(steps * number / count) for number in range(count + 1)})))

    def _frame(self, row: npt.NDArray[np.int64], columns: dict[str, npt.NDArray[Any]]) -> Any:
        return long_frame(self.panel, row, self.panel.last()[row], columns, time_name="cutoff")


def _rank(name: str) -> tuple[int, int]:
    if name in _ORDER:
        return _ORDER.index(name), 0
    return (len(_ORDER), int(name[5:])) if name.startswith("leap ") else (len(_ORDER) + 1, len(name))
