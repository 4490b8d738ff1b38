"""One model called by many threads at once, and called ten thousand times."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from leapts import LeapTS
from leapts.forecasting.predictor import Predictor
from leapts_qa.forks import in_fork, resident
from leapts_qa.outcome import Outcome
from leapts_qa.samples import TINY, forecaster, waves

THREADS = 16
PREDICTIONS_A_THREAD = 50
PREDICTIONS = 10_000
MAX_GROWTH = 2.0  # megabytes after the first tenth: detects 230 bytes per prediction
MAX_OBJECTS = 1000  # pandas keeps about a hundred references to copied frames until it removes them
_WARM = 150  # predictions until everything is imported and cached
THREAD_UNITS = ("predict", "predict together", "arrays")
MEMORY_UNITS = ("predict", "arrays")

Ask = Callable[[pd.DataFrame], Sequence[pd.DataFrame]]


def run_threads(unit: str, folder: Path, *, predictions: int = PREDICTIONS_A_THREAD) -> Outcome:  # noqa: ARG001
    """Call one model from many threads; every result must equal that of a single thread.

    Args:
        unit: The kind of call.
        folder: Unused.
        predictions: Calls of each thread.
    """
    ask = door(unit)
    frames = [waves(length=20 + number, seed=number) for number in range(THREADS)]
    alone = [ask(frame) for frame in frames]
    outcome, started = Outcome(), threading.Barrier(THREADS)

    def one(thread: int) -> list[bool]:
        places = np.random.default_rng(thread).integers(THREADS, size=predictions)
        started.wait()
        return [_same(ask(frames[place]), alone[place]) for place in places]

    with _switching_often(), ThreadPoolExecutor(THREADS) as pool:
        for thread, found in enumerate(pool.map(one, range(THREADS))):
            outcome.count("same bits as from one thread", found.count(True))
            for _ in range(found.count(False)):
                outcome.fail(f"{unit}, thread {thread}: another forecast")
    return outcome


def run_memory(unit: str, folder: Path, *, predictions: int = PREDICTIONS) -> Outcome:  # noqa: ARG001
    """Forecast repeatedly in a fork of this process, and measure its memory.

    Args:
        unit: The kind of call.
        folder: Unused.
        predictions: Number of calls.
    """
    outcome = Outcome()
    ended = in_fork(partial(repeated, door(unit, briefly=True), predictions), seconds=3600)
    if ended.value is None:
        outcome.fail(f"{unit}: {ended.error or 'did not end'}")
        return outcome
    megabytes, objects, differing = ended.value
    outcome.most("MB of additional memory", megabytes)
    outcome.most("additional Python objects", objects)
    if megabytes > MAX_GROWTH or objects > MAX_OBJECTS or differing:
        outcome.fail(f"{unit}: {megabytes:.1f} MB and {objects} objects more, {differing} forecasts differ")
    else:
        outcome.count("same forecast, no memory growth", predictions)
    return outcome


def repeated(ask: Ask, predictions: int) -> tuple[float, int, int]:
    """Return the growth in megabytes and objects after the first tenth, and the number of differing forecasts."""
    frame = waves(length=20)
    expected = ask(frame)[0].to_numpy().tolist()
    differing, before = 0, (0.0, 0)
    for number in range(predictions):
        # A new frame each time: pandas keeps hundreds of references to a frame that is used repeatedly.
        differing += ask(frame.copy())[0].to_numpy().tolist() != expected
        if number == max(_WARM, predictions // 10):
            before = _held()
    after = _held()
    return after[0] - before[0], after[1] - before[1], differing


def _held() -> tuple[float, int]:
    """Return megabytes and objects; the list of objects is large itself, so it is allocated before the measurement."""
    gc.collect()
    objects = len(gc.get_objects())
    return resident(), objects


def door(unit: str, *, briefly: bool = False) -> Ask:
    """Return a function that calls a newly fitted model.

    Args:
        unit: Univariate, multivariate, or by arrays.
        briefly: Whether to compute the forecast only, without intervals and leaps.
    """
    mixing = {"mixing": "mlp", "series_embedding": True} if unit == "predict together" else {}
    model = forecaster(model={**TINY, **mixing}).fit(waves())
    if unit == "arrays":
        return partial(_by_arrays, model.predictor_)
    return partial(_by_frames, model, briefly=briefly)


def _by_frames(model: LeapTS, frame: pd.DataFrame, *, briefly: bool) -> Sequence[pd.DataFrame]:
    if briefly:
        return (model.predict(frame),)
    forecast, trace = model.predict(frame, level=[80], return_trace=True)
    return forecast, trace.to_frame()


def _by_arrays(predictor: Predictor, frame: pd.DataFrame) -> Sequence[pd.DataFrame]:
    windows = predictor.windows_from_arrays(["a", "b"], frame["y"].to_numpy().reshape(2, -1))
    return (pd.DataFrame(predictor.predict(windows).values.numpy()),)


def _same(found: Sequence[pd.DataFrame], expected: Sequence[pd.DataFrame]) -> bool:
    return all(one.equals(other) for one, other in zip(found, expected, strict=True))


@contextmanager
def _switching_often() -> Iterator[None]:
    """Switch threads a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
