"""Metamorphic tests: a change of the data must have a known effect on the forecast.

Relations of `predict` are tested on models that are fitted once, relations of `fit` on tiny models fitted for each
example. Relations that are missing here do not hold: a fit on series in another order, or with more series, sees its
windows in another order; a window that varies by less than a few thousandths of the standard deviation of the fit
counts as constant; and a model without normalization depends on the levels it was fitted on.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leapts import DataError, LeapTS
from leapts_qa.metamorphic_relations import APART_ALONE, FIT, KEYS, PREDICT, Change
from leapts_qa.outcome import Outcome
from leapts_qa.samples import LOOKBACK, TINY, forecaster

PREDICTIONS, FITS = 500, 100  # examples of each unit
UNITS = (*(f"predict seed {seed}" for seed in range(19)), *(f"fit seed {seed}" for seed in range(5)))
NAMES = ("a", "b", "x1", "x2", "x10")  # in their natural order
MULTIVARIATE = "D"  # the daily model is multivariate
TOLERANCE = 1e-5  # of the mean standard deviation of a series' look-back

# Training series of the models; a multivariate model needs exactly these.
KINDS: dict[str, dict[str, Any]] = {
    "h": {},
    "MS": {"model": {**TINY, "normalization": "last"}},
    "D": {"model": {**TINY, "mixing": "mlp", "series_embedding": True, "state": {"kind": "cde", "clusters": 2}}},
    "steps": {"model": {**TINY, "state": "lstm"}},
}


@dataclass(frozen=True)
class Example:
    """Data and the change applied to them.

    Attributes:
        law: The relation.
        freq: The frequency of the data, which selects the model.
        lengths: The length of each series; series of a multivariate model share the first.
        seed: The seed of the values and of random choices in the relation.
    """

    law: str
    freq: str
    lengths: tuple[int, ...]
    seed: int

    def frame(self) -> pd.DataFrame:
        """Create the data before the change: waves, walks, counts and noise, some with names the models know."""
        rng = np.random.default_rng(self.seed)
        is_multivariate = self.freq == MULTIVARIATE
        names = ["a", "b", "c"] if is_multivariate else rng.permutation(NAMES)
        lengths = self.lengths[:1] * 3 if is_multivariate else self.lengths
        start = int(rng.integers(1000))
        parts = [
            pd.DataFrame({"unique_id": str(name), "ds": _stamps(self.freq, start, length), "y": _values(rng, length)})
            for name, length in zip(names, lengths, strict=False)
        ]
        return pd.concat(parts, ignore_index=True)


class BrokenLawError(AssertionError):
    """A forecast violates its relation."""


def run(unit: str, folder: Path, *, examples: int | None = None) -> Outcome:  # noqa: ARG001
    """Test the relations of predict or of fit on a number of examples."""
    from leapts_qa.metamorphic_search import tried

    what, _, seed = unit.partition(" seed ")
    if what == "predict":
        return tried(check_predict, PREDICT, KINDS, shortest=LOOKBACK, examples=examples or PREDICTIONS, seed=int(seed))
    return tried(check_fit, FIT, KINDS, shortest=3 * LOOKBACK, examples=examples or FITS, seed=int(seed))


def check_predict(example: Example) -> float:
    """Test a relation of `predict` on an example; return the difference in standard deviations."""
    model, frame = fitted(example.freq), example.frame()
    change = PREDICT[example.law](frame, example.freq, np.random.default_rng([example.seed, 1]))
    if example.freq == MULTIVARIATE and example.law in APART_ALONE:
        try:
            model.predict(change.given)
        except DataError:
            return 0.0
        raise BrokenLawError("a model that mixes its series took others")
    return compare(model.predict(change.given, level=[50]), model.predict(frame, level=[50]), change)


def check_fit(example: Example) -> float:
    """Test a relation of `fit` on an example."""
    frame = example.frame()
    change = FIT[example.law](frame, example.freq, np.random.default_rng([example.seed, 1]))
    before, after = (_fit(example.freq, data).predict(level=[50]) for data in (frame, change.given))
    return compare(after, before, change)


def compare(found: pd.DataFrame, before: pd.DataFrame, change: Change) -> float:
    """Return the largest difference between two forecasts, in standard deviations of each series' look-back.

    Args:
        found: The forecast of the changed data.
        before: The forecast of the original data.
        change: The change.

    Raises:
        BrokenLawError: When the difference is too large, or the rows differ.
    """
    expected = change.expect(before).sort_values(KEYS, ignore_index=True)
    found = found[~found["unique_id"].isin(change.further)].sort_values(KEYS, ignore_index=True)
    if found["unique_id"].tolist() != expected["unique_id"].tolist() or found["ds"].tolist() != expected["ds"].tolist():
        raise BrokenLawError(f"other rows: {found[KEYS].to_numpy()[:3]} instead of {expected[KEYS].to_numpy()[:3]}")
    columns = list(change.columns)
    difference = np.abs(found[columns].to_numpy() - expected[columns].to_numpy())
    tails = change.frame.sort_values(KEYS).groupby("unique_id")["y"].apply(_deviation)
    error = float((difference / found["unique_id"].map(tails).to_numpy()[:, None]).max())
    if not error <= (0.0 if change.exactly else TOLERANCE):
        raise BrokenLawError(f"off by {error:.3g} deviations")
    return error


def _deviation(values: pd.Series) -> float:
    """Compute the standard deviation of the look-back without squares, which may underflow."""
    tail = values.to_numpy()[-LOOKBACK:]
    return float(np.abs(tail - tail.mean()).mean())


@lru_cache(maxsize=len(KINDS))
def fitted(freq: str) -> LeapTS:
    """Return the model of a frequency."""
    rng = np.random.default_rng(5)
    names = ("a", "b", "c") if freq == MULTIVARIATE else ("a", "b")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": _stamps(freq, 0, 60), "y": _values(rng, 60, "waves")}) for name in names
    ]
    return _fit(freq, pd.concat(parts, ignore_index=True), max_steps=12)


def _fit(freq: str, frame: pd.DataFrame, max_steps: int = 4) -> LeapTS:
    rule: Any = 1 if freq == "steps" else freq
    return forecaster(freq=rule, max_steps=max_steps, **KINDS[freq]).fit(frame)


def _stamps(freq: str, start: int, length: int) -> Any:
    if freq == "steps":
        return np.arange(start, start + length)
    return pd.date_range("2000-01-01", periods=start + length, freq=freq)[start:]


def _values(rng: np.random.Generator, length: int, kind: str | None = None) -> npt.NDArray[np.float64]:
    """Generate values around a level; without a kind, of any scale up to a thousand."""
    time = np.arange(length)
    match kind or str(rng.choice(["waves", "walk", "counts", "noise"])):
        case "waves":
            values = np.sin(time / rng.uniform(0.5, 5)) + 0.1 * rng.normal(size=length)
        case "walk":
            values = rng.normal(size=length).cumsum()
        case "counts":
            values = rng.poisson(2.0, size=length) + 0.3 * rng.normal(size=length)
        case _:
            values = rng.normal(size=length)
    scale = 1.0 if kind else 10 ** rng.uniform(-0.5, 3)
    shifted: npt.NDArray[np.float64] = scale * (values + rng.uniform(-10, 10))
    return shifted
