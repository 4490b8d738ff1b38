"""The one protocol: the catalogue's borders, scaling learned on the training part, every window of every part."""

from dataclasses import dataclass
from pathlib import Path

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


def prepare(name: str, *, input_size: int, horizon: int, root: Path | None = None) -> Benchmark:
    """Load a set of the catalogue and cut it.

    Raises:
        DataError: When its file is not there, or its test part is kept apart (M4 has a protocol of its own).
    """
    dataset = find(name)
    if dataset.split is None:
        raise DataError(f"{dataset.name} keeps its test part apart and cannot be cut by borders")
    return cut(load_dataset(dataset, root), name, input_size=input_size, horizon=horizon)


def cut(panel: Panel, name: str, *, input_size: int, horizon: int) -> Benchmark:
    """Cut a panel at the borders of the catalogue's row of that name."""
    borders = find(name).split
    assert borders is not None, f"{name} has no borders"
    split = split_at(panel, borders, input_size)
    return Benchmark(split, Scaler.fit(split.train), input_size, horizon)
