"""Growth of time and memory with the size of the task."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from leapts import LeapTS
from leapts.config import ModelConfig
from leapts.model.build import build_model
from leapts_bench.results import Line
from leapts_bench.speed.plan import HORIZON, LOOKBACK, WINDOWS, Plan, random_walks
from leapts_bench.speed.timing import Action, exponent, fastest, peak_memory

_VARIATES = (7, 70, 700, 7000)
_SERIES = (1_000, 10_000, 100_000)
_HORIZONS = (24, 48, 96, 192, 336, 720)
_LOOKBACKS = (96, 192, 336, 512, 720)
_LEAST_BYTES = 4_000_000
_FEW_WINDOWS = 4  # for thousands of series
# Where the model changes with the size: the number of leaps of untrained models is arbitrary.
_LEAPS = 4


def growth(plan: Plan) -> Line:
    """Measure each size in turn, with all others fixed."""
    tasks: dict[str, tuple[Sequence[int], Callable[[int], Action]]] = {
        "variates": (_VARIATES, lambda size: _forward(plan, variates=size, windows=_FEW_WINDOWS)),
        "variates, mixed": (_VARIATES, lambda size: _forward(plan, variates=size, windows=_FEW_WINDOWS, mixing="mlp")),
        "horizon": (_HORIZONS, lambda size: _forward(plan, horizon=size, step=size // _LEAPS)),
        "look-back": (_LOOKBACKS, lambda size: _forward(plan, lookback=size, step=HORIZON // _LEAPS)),
        "series of a ragged panel": (_SERIES, lambda size: _panel(plan, size)),
    }
    return {"tasks": [_grown(name, sizes, make, plan) for name, (sizes, make) in tasks.items()]}


def _grown(name: str, sizes: Sequence[int], make: Callable[[int], Action], plan: Plan) -> Line:
    sizes = sizes[:2] if plan.is_quick else sizes
    seconds, memory = [], []
    for size in sizes:
        action = make(size)
        seconds.append(fastest({name: action}, min(3, plan.rounds))[name])
        memory.append(peak_memory(action))
    return {
        "name": name,
        "sizes": list(sizes),
        "seconds": seconds,
        "memory": memory,
        "exponent": exponent(sizes, seconds),
        "last_exponent": exponent(sizes[-2:], seconds[-2:]),
        "memory_exponent": memory_exponent(sizes, memory),
    }


def memory_exponent(sizes: Sequence[int], memory: Sequence[int | None]) -> float | None:
    """Fit the exponent of memory over sizes large enough to measure; None with fewer than two."""
    known = [(size, held) for size, held in zip(sizes, memory, strict=True) if held and held >= _LEAST_BYTES]
    return exponent(*zip(*known, strict=True)) if len(known) > 1 else None


def _forward(
    plan: Plan,
    *,
    variates: int = 7,
    horizon: int = HORIZON,
    lookback: int = LOOKBACK,
    windows: int = WINDOWS,
    mixing: str = "none",
    step: int | None = None,
) -> Action:
    options: dict[str, Any] = {"mixing": {"kind": mixing}, "n_series": variates} if mixing != "none" else {}
    if step is not None:
        options["scheduling"] = {"kind": "fixed", "step": step}
    model = build_model(ModelConfig(h=horizon, input_size=lookback, **options), seed=plan.seed)
    history = random_walks(windows, variates, lookback, plan.seed)
    return lambda: model.forecast(history)


def _panel(plan: Plan, series: int) -> Action:
    """Forecast a frame of ragged series."""
    model = LeapTS(h=12, input_size=24, freq=1, max_steps=20, random_seed=plan.seed, pad_short=True)
    model.fit(_ragged(200, plan.seed))
    frame = _ragged(series, plan.seed + 1)
    return lambda: model.predict(frame)


def _ragged(series: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(40, 80, series)
    steps = np.concatenate([np.arange(1, length + 1) for length in lengths])
    names = np.repeat(np.arange(series), lengths)
    values = 100 + 10 * np.sin(steps / 6 + names) + generator.normal(size=len(steps))
    return pd.DataFrame({"unique_id": names, "ds": steps, "y": values})
