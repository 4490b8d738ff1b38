"""The protocol: split boundaries of the catalogue, scaling fitted on the training part, all windows of every part."""

from dataclasses import dataclass
from pathlib import Path

from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.splits import Span, Split
from leapts.data.windows import AlignedWindows
from leapts.datasets.catalogue import find
from leapts.datasets.loading import load_dataset
from leapts.errors import DataError
from leapts_bench.scoring import Predictor, Scores, score
from leapts_bench.splits import PanelSplit, split_at


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set split for one look-back and horizon.

    The parts are methods: a search calls `train` and `validation`, and never reads the test part.
    """

    split: PanelSplit
    scaler: Scaler
    input_size: int
    horizon: int

    @property
    def variates(self) -> int:
        """Return the number of series."""
        return len(self.split.train)

    def train(self) -> AlignedWindows:
        """Return the training windows."""
        return self._windows(self.split.train)

    def validation(self) -> AlignedWindows:
        """Return the validation windows."""
        return self._windows(self.split.val)

    def test(self) -> AlignedWindows:
        """Return the test windows, used once by each reported run."""
        return self._windows(self.split.test)

    def validation_scores(self, predictor: Predictor) -> Scores:
        """Score the forecasts of the validation windows."""
        return score(predictor, self.validation(), self.scaler)

    def test_scores(self, predictor: Predictor) -> Scores:
        """Score the forecasts of the test windows."""
        return score(predictor, self.test(), self.scaler)

    def _windows(self, part: Panel) -> AlignedWindows:
        matrix = self.scaler.transform(part).view(len(part), -1)
        return AlignedWindows(matrix, self.input_size, self.horizon)


def prepare(
    name: str, *, input_size: int, horizon: int, borders: Split | None = None, root: Path | None = None
) -> Benchmark:
    """Load and split a data set of the catalogue.

    Args:
        name: The data set.
        input_size: The look-back.
        horizon: The horizon.
        borders: The split boundaries; by default those of the catalogue.
        root: The data folder; by default the one that `LEAPTS_DATA` names.

    Raises:
        DataError: When the file does not exist, or the test part is a separate file (M4 has its own protocol).
    """
    dataset = find(name)
    borders = borders or dataset.split
    if borders is None:
        raise DataError(f"{dataset.name} keeps its test part apart and cannot be cut by borders")
    return cut(load_dataset(dataset, root), borders, input_size=input_size, horizon=horizon)


def cut(panel: Panel, borders: Split, *, input_size: int, horizon: int) -> Benchmark:
    """Split a panel, and fit its scaling on the training part."""
    split = split_at(panel, borders, input_size)
    return Benchmark(split, Scaler.fit(split.train), input_size, horizon)


def folds(borders: Split, count: int) -> list[Split]:
    """Split training and validation parts again, each time with an earlier validation part of the same size.

    The last fold is the original split; all keep its test part, which none of them uses.
    """
    size = borders.val.stop - borders.val.start
    ends = [borders.train.stop - back * size for back in reversed(range(count))]
    return [Split(Span(0, end), Span(end, end + size), borders.test) for end in ends]
