"""LeapTS as an estimator and predictor of GluonTS, with quantile forecasts."""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leapts.errors import DataError
from leapts.files import write_file
from leapts.forecasting import LeapTS
from leapts.integrations.quantiles import quantile_arrays

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gluonts.core.component import validated
        from gluonts.model.estimator import Estimator
        from gluonts.model.forecast import QuantileForecast
        from gluonts.model.predictor import Predictor
except ImportError as error:
    raise ImportError("the GluonTS integration needs: pip install 'leapts[gluonts]'") from error

Entry = Mapping[str, Any]

QUANTILE_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_MODEL, _LEVELS = "model", "quantile_levels.json"


class LeapTSPredictor(Predictor):
    """A fitted LeapTS as a predictor of GluonTS.

    An entry whose `item_id` was fitted is scaled and calibrated as that series, every other entry as an unseen series.
    Several entries may have one `item_id`: they are windows of that series. A multivariate model forecasts the first
    windows of all its series together, then the second ones, and so on.

    Args:
        model: A fitted `leapts.LeapTS`.
        quantile_levels: Quantiles of every forecast.
    """

    def __init__(self, model: LeapTS, quantile_levels: Sequence[float] = QUANTILE_LEVELS) -> None:
        super().__init__(prediction_length=model.h)
        self.model, self.quantile_levels = model, tuple(quantile_levels)

    def predict(self, dataset: Iterable[Entry], **_: Any) -> Iterator[QuantileForecast]:
        """Forecast every entry, in the order of the dataset.

        Options of sampling predictors, such as `num_samples`, have no effect.
        """
        entries = list(dataset)
        names = [_name(entry, f"unseen {place}") for place, entry in enumerate(entries)]
        forecasts: dict[int, Any] = {}
        for places in _without_repeats(names):
            history = _frame([entries[place] for place in places], [names[place] for place in places])
            arrays = quantile_arrays(self.model, history, self.quantile_levels)
            forecasts |= {place: arrays[names[place]][1:] for place in places}
        keys = [str(level) for level in self.quantile_levels]
        for place, entry in enumerate(entries):
            start = entry["start"] + len(entry["target"])
            yield QuantileForecast(forecasts[place], start, keys, item_id=entry.get("item_id"))

    def serialize(self, path: Path) -> None:
        """Write the predictor to a folder."""
        super().serialize(path)
        self.model.save(path / _MODEL)
        write_file(path / _LEVELS, json.dumps(self.quantile_levels).encode())

    @classmethod
    def deserialize(cls, path: Path, **_: Any) -> "LeapTSPredictor":
        """Read a predictor from its folder."""
        return cls(LeapTS.load(path / _MODEL), json.loads((path / _LEVELS).read_text(encoding="utf-8")))


class LeapTSEstimator(Estimator):
    """LeapTS for GluonTS: one model for all series of a dataset.

    Options that are not given are chosen from the data. Missing values are filled with the last value before them,
    series shorter than a window are padded. The target must be univariate; covariates are not used.

    Args:
        prediction_length: Horizon, in steps.
        quantile_levels: Quantiles of every forecast.
        options: Options of `leapts.LeapTS`, such as `input_size`, `max_steps` and `random_seed`.
    """

    @validated()  # type: ignore[untyped-decorator]
    def __init__(
        self, prediction_length: int, quantile_levels: tuple[float, ...] = QUANTILE_LEVELS, **options: Any
    ) -> None:
        super().__init__()
        self.prediction_length, self.quantile_levels = prediction_length, quantile_levels
        LeapTS(prediction_length, **options)  # refuses an unknown option before the data are read
        self.options = options

    @classmethod
    def from_hyperparameters(cls, **hyperparameters: Any) -> "LeapTSEstimator":
        """Create an estimator; that of the base class would drop the options of LeapTS."""
        estimator: LeapTSEstimator = cls(**hyperparameters)
        return estimator

    def train(self, training_data: Iterable[Entry], validation_data: Any = None, **_: Any) -> LeapTSPredictor:  # noqa: ARG002
        """Fit LeapTS.

        Options of other estimators, such as `cache_data`, have no effect.

        Args:
            training_data: All data that may be learned from; the fit itself holds out the end of every series.
            validation_data: Not used.
        """
        entries = list(training_data)
        names = [_name(entry, f"series {place}") for place, entry in enumerate(entries)]
        options: dict[str, Any] = {"fill": "ffill"}
        if self.options.get("init") != "pretrained" and any(entry.get("item_id") is None for entry in entries):
            # Without names, a multivariate model could not tell its series apart when it forecasts.
            options["model"] = {"mixing": "none"}
        model = LeapTS(self.prediction_length, **options | self.options)
        return LeapTSPredictor(model.fit(_frame(entries, names), progress=None), self.quantile_levels)


def _name(entry: Entry, otherwise: str) -> str:
    name = entry.get("item_id")
    return otherwise if name is None else str(name)


def _without_repeats(names: Sequence[str]) -> list[list[int]]:
    """Split places into lists without repeated names: first ones, second ones, and so on."""
    lists: list[list[int]] = []
    counts: Counter[str] = Counter()
    for place, name in enumerate(names):
        if counts[name] == len(lists):
            lists.append([])
        lists[counts[name]].append(place)
        counts[name] += 1
    return lists


def _frame(entries: Sequence[Entry], names: Sequence[str]) -> pd.DataFrame:
    """Build a long frame; a period becomes the timestamp of its start."""
    targets = [np.asarray(entry["target"], dtype=np.float64) for entry in entries]
    for name, target in zip(names, targets, strict=True):
        if target.ndim != 1 or not len(target):
            raise DataError(
                f"{name}: the target has the shape {target.shape}; give one value for each step, and several variables "
                "as several entries"
            )
    starts = zip(entries, targets, strict=True)
    timestamps = [pd.period_range(entry["start"], periods=len(target)).to_timestamp() for entry, target in starts]
    return pd.DataFrame(
        {
            "unique_id": np.repeat(np.array(names, dtype=object), [len(target) for target in targets]),
            "ds": np.concatenate(timestamps),
            "y": np.concatenate(targets),
        }
    )
