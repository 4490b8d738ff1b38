"""The protocol of M4: ragged series, the test part of the competition, SMAPE and MASE in the units of the data.

The last horizon of every training series is held out to choose options and training length. The tested model is
refitted on the whole training series, and forecasts from their ends.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.windows import Windows
from leapts.datasets.catalogue import Dataset, find
from leapts.datasets.loading import load_dataset
from leapts.forecasting.metrics import mase, naive_scale, smape
from leapts.training.loop import WindowSource
from leapts_bench.m4_windows import UNITS_OF_WINDOWS, with_repeated_starts, with_unknown_ends
from leapts_bench.runs import Learning, Unit
from leapts_bench.scoring import Predictor
from leapts_bench.splits import PanelSplit, split_by_sizes

_ROWS_AT_A_TIME = 16384

# Training windows end in this many of the last horizons, because the distant past says little about the end.
# Yearly series use more of their past, because growth differs from one horizon to the next.
_HORIZONS_TO_LEARN_FROM = {
    "M4-Yearly": 8,
    "M4-Quarterly": 2,
    "M4-Monthly": 2,
    "M4-Weekly": 10,
    "M4-Daily": 10,
    "M4-Hourly": 10,
}

# Windows with partly unknown targets begin their horizons up to one horizon later, so this many fewer horizons of them
# reach closer to the end, and not as far back.
_FEWER_UNFINISHED = 0.5


class Earlier(NamedTuple):
    """Number of horizons before the ends of the series at which the data is cut."""

    horizons: int


@dataclass(frozen=True)
class M4Scores:
    """Means over series, with equal weights."""

    series: int
    smape: float
    mase: float
    leaps: float | None

    def to_dict(self) -> dict[str, float | int | None]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class M4Benchmark:
    """The series of one frequency, scaled so that the loss is close to MASE, OWA or SMAPE."""

    dataset: Dataset
    panel: Panel
    split: PanelSplit
    scaler: Scaler
    learning: Learning
    input_size: int
    horizon: int
    root: Path | None

    @property
    def variates(self) -> None:
        """Return None: the model is univariate."""

    def train(self) -> WindowSource:
        """Return training windows without the held-out horizon."""
        return self._to_learn_from(self.split.train)

    def whole(self) -> WindowSource:
        """Return training windows up to the ends of the training series, for the final fit."""
        return self._to_learn_from(self.panel)

    def validation(self) -> WindowSource:
        """Return the last horizon of every training series."""
        part = self.split.val
        return self._windows(self.scaler.transform(part), part.offsets, step=self.horizon)

    def validation_scores(self, predictor: Predictor) -> M4Scores:
        """Score the forecasts of the held-out horizon."""
        return self._scores(predictor, self.panel.head(-self.horizon), self.panel.tail(self.horizon))

    def test_scores(self, predictor: Predictor) -> M4Scores:
        """Score the forecasts of the competition's test part, once for each reported run."""
        return self._scores(predictor, self.panel, load_dataset(self.dataset, self.root, part="test"))

    def naive2_scores(self) -> M4Scores:
        """Score the Naive2 forecasts of the competition, which OWA is relative to."""
        forecast = load_dataset(self.dataset, self.root, part="naive2").values.view(len(self.panel), -1)
        actual = load_dataset(self.dataset, self.root, part="test").values.view(len(self.panel), -1)
        return self._compared(actual, forecast, self.panel, None)

    def _to_learn_from(self, part: Panel) -> WindowSource:
        values, offsets = self.scaler.transform(part), part.offsets
        horizons: float = _HORIZONS_TO_LEARN_FROM[self.dataset.name]
        if self.learning.short_histories:
            values, offsets = with_repeated_starts(values, offsets, self.input_size - self.horizon)
        if self.learning.unfinished:
            values, offsets = with_unknown_ends(values, offsets, self.horizon - 1)
            horizons -= _FEWER_UNFINISHED
        pad_short = not self.learning.short_histories  # already padded, if they have a horizon of history
        return self._windows(values, offsets, latest=round(horizons * self.horizon), pad_short=pad_short)

    def _windows(
        self,
        values: Float[Tensor, " rows"],
        offsets: Int64[Tensor, " offsets"],
        *,
        step: int = 1,
        latest: int | None = None,
        pad_short: bool = True,
    ) -> WindowSource:
        windows = Windows(values, offsets, self.input_size, self.horizon, step=step, pad_short=pad_short, latest=latest)
        own = UNITS_OF_WINDOWS.get(self.learning.unit)
        return own.windows(windows) if own else windows

    def _scores(self, predictor: Predictor, known: Panel, ahead: Panel) -> M4Scores:
        if own := UNITS_OF_WINDOWS.get(self.learning.unit):
            predictor = own.predictor(predictor)
        tail = known.tail(self.input_size)
        windows = Windows(self.scaler.transform(tail), tail.offsets, self.input_size, 0, pad_short=True)
        parts = [
            predictor.predict(windows.gather(index).history)
            for index in torch.arange(len(windows)).split(_ROWS_AT_A_TIME)
        ]
        forecast = self.scaler.inverse(torch.cat([part.values for part in parts]).squeeze(1))
        leaps = [part.leaps for part in parts if part.leaps is not None]
        mean_leaps = float(torch.cat(leaps).double().mean()) if leaps else None
        return self._compared(ahead.values.view(len(ahead), -1), forecast, known, mean_leaps)

    def _compared(
        self,
        actual: Float64[Tensor, "series horizon"],
        forecast: Float64[Tensor, "series horizon"],
        known: Panel,
        leaps: float | None,
    ) -> M4Scores:
        scale = naive_scale(known.values.numpy(), known.offsets.numpy(), self.dataset.season)
        # Without the held-out horizon a few series are constant; with it, none is.
        moving = torch.from_numpy(scale > 0)
        scaled = mase(actual[moving], forecast[moving], scale[moving.numpy()])
        return M4Scores(len(actual), smape(actual, forecast), scaled, leaps)


def prepare_m4(
    name: str,
    *,
    input_size: int,
    horizon: int,
    learning: Learning | None = None,
    root: Path | None = None,
    earlier: Earlier | None = None,
) -> M4Benchmark:
    """Load the training series of a frequency, hold out their last horizon, and scale them.

    If the data is cut earlier, series with less than one horizon before the held-out part are left out.
    """
    dataset = find(name)
    panel = load_dataset(dataset, root, part="train")
    if earlier is not None:
        panel = _ended(panel, earlier.horizons * horizon, least=2 * horizon)
    split = split_by_sizes(panel, val_size=horizon, test_size=0, input_size=input_size)
    learning = learning or Learning()
    scaler = _scaler(split.train, dataset, learning.unit, input_size)
    return M4Benchmark(dataset, panel, split, scaler, learning, input_size, horizon, root)


def _ended(panel: Panel, earlier: int, *, least: int) -> Panel:
    """Cut series a number of steps before their ends, and leave out those shorter than the minimum."""
    long_enough = (panel.lengths >= least + earlier).nonzero().squeeze(1).tolist()
    return panel.select([panel.series[index] for index in long_enough]).slice(0, -earlier or None)


def _scaler(train: Panel, dataset: Dataset, unit: Unit, input_size: int) -> Scaler:
    if unit in UNITS_OF_WINDOWS:  # computed for each window, in the units of the data
        return Scaler(torch.zeros(len(train)).double(), torch.ones(len(train)).double())
    fitted = Scaler.fit(train)
    scale = _naive_errors(train, 1)
    if unit == "owa":
        scale = _costs_of_owa(train.tail(input_size), _naive_errors(train, dataset.season))
    return Scaler(fitted.mean, torch.where(scale > 0, scale, fitted.std))


def _naive_errors(panel: Panel, season: int) -> Float64[Tensor, " series"]:
    return torch.from_numpy(naive_scale(panel.values.numpy(), panel.offsets.numpy(), season))


def _costs_of_owa(ends: Panel, naive: Float64[Tensor, " series"]) -> Float64[Tensor, " series"]:
    """Compute the error that costs the same OWA in every series; 0 for constant series.

    OWA is the mean of SMAPE, which is relative to the level of a series, and MASE, which is relative to the error of
    the naive forecast, each divided by the score of a naive forecast; here by the naive error over all series.
    """
    level = _mean_size(ends)
    relative = (naive / level)[(naive > 0) & (level > 0)].mean()
    return 2 / (1 / (level * relative) + 1 / naive)


def _mean_size(panel: Panel) -> Float64[Tensor, " series"]:
    sums = torch.zeros(len(panel), dtype=torch.float64)
    which = torch.arange(len(panel)).repeat_interleave(panel.lengths)
    return sums.index_add_(0, which, panel.values.abs()) / panel.lengths
