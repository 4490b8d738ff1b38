"""The one protocol: the catalogue's borders, scaling learned on the training part, every window of every part."""

from dataclasses import dataclass
from pathlib import Path

from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.splits import PanelSplit, Span, Split, split_at
from leapts.data.windows import AlignedWindows
from leapts.datasets.catalogue import find
from leapts.datasets.loading import load_dataset
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
    name: str, *, input_size: int, horizon: int, borders: Split | None = None, root: Path | None = None
) -> Benchmark:
    """Load a set of the catalogue and cut it.

    Args:
        name: The set.
        input_size: The look-back.
        horizon: The horizon.
        borders: Where to cut; at the catalogue's borders if left out.
        root: The data folder, if not the one that `LEAPTS_DATA` names.

    Raises:
        DataError: When its file is not there, or its test part is kept apart (M4 has a protocol of its own).
    """
    dataset = find(name)
    borders = borders or dataset.split
    if borders is None:
        raise DataError(f"{dataset.name} keeps its test part apart and cannot be cut by borders")
    return cut(load_dataset(dataset, root), borders, input_size=input_size, horizon=horizon)


def cut(panel: Panel, borders: Split, *, input_size: int, horizon: int) -> Benchmark:
    """Cut a panel, and learn its scaling from the training part."""
    split = split_at(panel, borders, input_size)
    return Benchmark(split, Scaler.fit(split.train), input_size, horizon)


def folds(borders: Split, count: int) -> list[Split]:
    """The training and validation parts cut anew, each time with an earlier validation part of the same size.

    The last fold is the split itself; all keep its test part, which none of them trains or validates on.
    """
    size = borders.val.stop - borders.val.start
    ends = [borders.train.stop - back * size for back in reversed(range(count))]
    return [Split(Span(0, end), Span(end, end + size), borders.test) for end in ends]
