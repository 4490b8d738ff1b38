"""The one protocol: the catalogue's borders, scaling learned on the training part, every window of every part."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from leapts.data.borders import Span, Split
from leapts.data.catalogue import find
from leapts.data.loading import load_dataset
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.splits import PanelSplit, split_at
from leapts.data.windows import AlignedWindows
from leapts.errors import DataError
from leapts_bench.scoring import Predictor, Scores, score


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One set cut for one look-back and horizon.

    The parts are methods: a search asks for `train` and `validation` and so never touches what is tested on.
    """

    split: PanelSplit
    scaler: Scaler
    input_size: int
    horizon: int

    @property
    def variates(self) -> int:
        """How many series are forecast together."""
        return len(self.split.train)

    def train(self) -> AlignedWindows:
        """Windows to learn from."""
        return self._windows(self.split.train)

    def validation(self) -> AlignedWindows:
        """Windows to choose weights and options by."""
        return self._windows(self.split.val)

    def test(self) -> AlignedWindows:
        """Windows to report on, opened once by each reported run."""
        return self._windows(self.split.test)

    def validation_scores(self, predictor: Predictor) -> Scores:
        """How well the validation windows are forecast."""
        return score(predictor, self.validation(), self.scaler)

    def test_scores(self, predictor: Predictor) -> Scores:
        """How well the test windows are forecast."""
        return score(predictor, self.test(), self.scaler)

    def _windows(self, part: Panel) -> AlignedWindows:
        matrix = self.scaler.transform(part).view(len(part), -1)
        return AlignedWindows(matrix, self.input_size, self.horizon)


def prepare(
    name: str, *, input_size: int, horizon: int, borders: Split | None = None, season: int = 0, root: Path | None = None
) -> Benchmark:
    """Load a set of the catalogue and cut it.

    Args:
        name: The set.
        input_size: The look-back.
        horizon: The horizon.
        borders: Where to cut; at the catalogue's borders if left out.
        season: Steps of the season to take off; 0 for none.
        root: The data folder, if not the one that `LEAPTS_DATA` names.

    Raises:
        DataError: When its file is not there, or its test part is kept apart (M4 has a protocol of its own).
    """
    dataset = find(name)
    borders = borders or dataset.split
    if borders is None:
        raise DataError(f"{dataset.name} keeps its test part apart and cannot be cut by borders")
    return cut(load_dataset(dataset, root), borders, input_size=input_size, horizon=horizon, season=season)


def cut(panel: Panel, borders: Split, *, input_size: int, horizon: int, season: int = 0) -> Benchmark:
    """Cut a panel, and learn its scaling, and the season to take off, from the training part.

    The scaling is that of the values with their season, as in print. What is taken off a forecast is taken off what
    comes true as well, so errors are what they would be with the season put back on both.
    """
    split = split_at(panel, borders, input_size)
    scaler = Scaler.fit(split.train)
    if season:
        split = split_at(without_season(panel, season, until=borders.train.stop), borders, input_size)
    return Benchmark(split, scaler, input_size, horizon)


def without_season(panel: Panel, season: int, *, until: int) -> Panel:
    """Aligned series, each less its usual course over a season, its level kept.

    The usual course is the mean at each step of the season, over the steps before `until`.
    """
    values = panel.matrix()
    profile = torch.stack([values[:, step:until:season].mean(1) for step in range(season)], 1)
    profile -= profile.mean(1, keepdim=True)
    phases = torch.arange(values.shape[1]) % season
    return replace(panel, values=(values - profile[:, phases]).view(-1))


def folds(borders: Split, count: int) -> list[Split]:
    """The training and validation parts cut anew, each time with an earlier validation part of the same size.

    The last fold is the split itself; all keep its test part, which none of them trains or validates on.
    """
    size = borders.val.stop - borders.val.start
    ends = [borders.train.stop - back * size for back in reversed(range(count))]
    return [Split(Span(0, end), Span(end, end + size), borders.test) for end in ends]
