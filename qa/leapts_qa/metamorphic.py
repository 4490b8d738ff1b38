"""Laws tried on examples that hypothesis makes up: what a change of the data must do to the forecast.

The laws of `predict` are tried on models that are fitted once, the laws of `fit` on tiny models fitted for each.
A law that is not here does not hold, for a reason: a fit on series in another order, or with further ones, meets its
windows in another order; a window that moves by less than a few thousandths of the deviation of the fit is taken for
constant; and a model without normalisation knows the levels it was fitted on.
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
JOINT = "D"  # the model of days mixes its series
TOLERANCE = 1e-5  # of the mean deviation of a series' look-back

# What the models are fitted on; those that mix series need exactly theirs.
KINDS: dict[str, dict[str, Any]] = {
    "h": {},
    "MS": {"model": {**TINY, "normalization": "last"}},
    "D": {"model": {**TINY, "mixing": "mlp", "series_embedding": True, "state": {"kind": "cde", "clusters": 2}}},
    "steps": {"model": {**TINY, "state": "lstm"}},
}


@dataclass(frozen=True)
class Example:
    """Data, and what is done to them.

    Attributes:
        law: Which law.
        freq: The data's frequency, and with it the model.
        lengths: How many steps each series has; those that a model mixes share the first.
        seed: Decides the values, and all that is left to chance in the law.
    """

    law: str
    freq: str
    lengths: tuple[int, ...]
    seed: int

    def frame(self) -> pd.DataFrame:
        """The data before the change: waves, walks, counts and noise, some with names the models know."""
        rng = np.random.default_rng(self.seed)
        is_multivariate = self.freq == JOINT
        names = ["a", "b", "c"] if is_multivariate else rng.permutation(NAMES)
        lengths = self.lengths[:1] * 3 if is_multivariate else self.lengths
        start = int(rng.integers(1000))
        parts = [
            pd.DataFrame({"unique_id": str(name), "ds": _stamps(self.freq, start, length), "y": _values(rng, length)})
            for name, length in zip(names, lengths, strict=False)
        ]
        return pd.concat(parts, ignore_index=True)


class BrokenLawError(AssertionError):
    """A forecast that is not what the law says."""


def run(unit: str, folder: Path, *, examples: int | None = None) -> Outcome:  # noqa: ARG001
    """Try the laws of predict or of fit on some hundred examples, or so many."""
    from leapts_qa.metamorphic_search import tried

    what, _, seed = unit.partition(" seed ")
    if what == "predict":
        return tried(check_predict, PREDICT, KINDS, shortest=LOOKBACK, examples=examples or PREDICTIONS, seed=int(seed))
    return tried(check_fit, FIT, KINDS, shortest=3 * LOOKBACK, examples=examples or FITS, seed=int(seed))


def check_predict(example: Example) -> float:
    """Hold one law of `predict` to one example; returns how far off the forecast was, in deviations."""
    model, frame = fitted(example.freq), example.frame()
    change = PREDICT[example.law](frame, example.freq, np.random.default_rng([example.seed, 1]))
    if example.freq == JOINT and example.law in APART_ALONE:
        try:
            model.predict(change.given)
        except DataError:
            return 0.0
        raise BrokenLawError("a model that mixes its series took others")
    return compare(model.predict(change.given, level=[50]), model.predict(frame, level=[50]), change)


def check_fit(example: Example) -> float:
    """Hold one law of `fit` to one example."""
    frame = example.frame()
    change = FIT[example.law](frame, example.freq, np.random.default_rng([example.seed, 1]))
    before, after = (_fit(example.freq, data).predict(level=[50]) for data in (frame, change.given))
    return compare(after, before, change)


def compare(found: pd.DataFrame, before: pd.DataFrame, change: Change) -> float:
    """The largest difference between two forecasts, in deviations of each series' look-back.

    Args:
        found: From the data after the change.
        before: From those before.
        change: What was done.

    Raises:
        BrokenLawError: When it is larger than it may be, or the rows are others.
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
    """Of the look-back; not of its squares, which may be too small for a number."""
    tail = values.to_numpy()[-LOOKBACK:]
    return float(np.abs(tail - tail.mean()).mean())


@lru_cache(maxsize=len(KINDS))
def fitted(freq: str) -> LeapTS:
    """The model for a frequency."""
    rng = np.random.default_rng(5)
    names = ("a", "b", "c") if freq == JOINT else ("a", "b")
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
    """Made-up values around some level; where no kind is asked for, of any scale up to a thousand."""
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
