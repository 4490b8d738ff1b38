"""Reproducibility: repeated fits in new processes, one thread and two, one series and many."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from leapts import LeapTS
from leapts_qa.outcome import Outcome
from leapts_qa.samples import TINY, forecaster, waves

PROCESSES, FITS = 4, 5  # fits of each process
TOLERANCE = 1e-5  # of a series' standard deviation
REPEAT_UNITS = ("1 thread", "2 threads")
AGAINST_UNITS = ("threads", "batches")

Floats = npt.NDArray[np.float64]

# Wide enough that torch splits matrix products between threads.
_JOINT: dict[str, Any] = {"model": {"mixing": "mlp", "series_embedding": True, "hidden_size": 64}}
_UNIVARIATE: dict[str, Any] = {"model": {"mixing": "none", "hidden_size": 64, "normalization": "mean"}}


def run_repeats(unit: str, folder: Path, *, processes: int = PROCESSES, fits: int = FITS) -> Outcome:  # noqa: ARG001
    """Fit several times in new processes: weights, reports and forecasts must be equal bit for bit."""
    outcome = Outcome()
    found = [fit for _ in range(processes) for fit in in_own_process(int(unit.split()[0]), fits)]
    for number, fit in enumerate(found):
        if fit["digest"] == found[0]["digest"]:
            outcome.count("same bits as the first fit")
        else:
            outcome.fail(f"{unit}, fit {number}: other weights or forecasts")
    return outcome


def run_against(unit: str, folder: Path, *, series: int = 300) -> Outcome:  # noqa: ARG001
    """Compare one thread with two, or each series forecast alone with all at once.

    Args:
        unit: The comparison.
        folder: Unused.
        series: Number of series to forecast at once.
    """
    outcome = Outcome()
    if unit == "threads":
        one, two = (in_own_process(threads, 1)[0]["forecasts"] for threads in (1, 2))
        for kind, forecasts in one.items():
            _judge(f"{kind}, fitted and forecast", np.array(forecasts), np.array(two[kind]), outcome)
        return outcome
    for kind, options in {"tiny": {"model": TINY}, "wide": {**_UNIVARIATE, "max_steps": 5}}.items():
        model = forecaster(**options).fit(waves())
        names = tuple(f"s{number}" for number in range(series))
        frame = waves(names, length=20)
        together = model.predict(frame)["LeapTS"].to_numpy().reshape(series, -1)
        for name, group in frame.groupby("unique_id"):
            place = list(model.read(frame).series).index(str(name))
            _judge(f"{kind}, {name}", model.predict(group)["LeapTS"].to_numpy(), together[place], outcome)
        _arrays_against(kind, model, frame, outcome)
    return outcome


def _arrays_against(kind: str, model: LeapTS, frame: pd.DataFrame, outcome: Outcome) -> None:
    """Compare single requests with all of them in one batch."""
    predictor = model.predictor_
    groups = frame.groupby("unique_id")["y"]
    requests = [predictor.windows_from_arrays([str(name)], [group.to_numpy()]) for name, group in groups]
    alone = [predictor.predict(request) for request in requests]
    for number, (one, beside) in enumerate(zip(alone, predictor.predict_together(requests), strict=True)):
        _judge(f"{kind}, arrays, {number}", one.values.numpy(), beside.values.numpy(), outcome)


def _judge(what: str, one: Floats, other: Floats, outcome: Outcome) -> None:
    """Compare in units of the standard deviation of the waves, which is about 0.7."""
    error = float(np.abs(one - other).max()) / 0.7
    outcome.most("millionths of a standard deviation difference", error * 1e6)
    if error <= TOLERANCE:
        outcome.count("equal within 1e-5")
    else:
        outcome.fail(f"{what}: {error:.3g} deviations apart")


def in_own_process(threads: int, fits: int) -> list[dict[str, Any]]:
    """Run the fits in a new process with a number of threads."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # Waiting threads yield the processor, so that other processes do not slow them down.
    environment["OMP_WAIT_POLICY"] = "passive"
    done = subprocess.run(
        [sys.executable, "-m", "leapts_qa.reproducibility", str(threads), str(fits)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def fit_and_tell() -> dict[str, Any]:
    """Fit a multivariate and a univariate model; return digests and forecasts."""
    frame = waves(("a", "b", "c", "d", "e"), length=260)
    digest, forecasts = hashlib.sha256(), {}
    for kind, options in {"multivariate": _JOINT, "univariate": _UNIVARIATE}.items():
        model = LeapTS(24, input_size=48, max_steps=6, batch_size=32, val_size=48, **options).fit(frame)
        for name, value in sorted(model.predictor_.model.state_dict().items()):
            digest.update(name.encode() + value.numpy().tobytes())
        digest.update(json.dumps(model.report_.to_dict()).encode())
        forecast = model.predict(frame, level=[80])
        digest.update(forecast.drop(columns=["unique_id", "ds"]).to_numpy().tobytes())
        forecasts[kind] = forecast["LeapTS"].tolist()
    return {"digest": digest.hexdigest(), "forecasts": forecasts}


def main(arguments: Sequence[str]) -> None:
    """Print a line for each fit, in the new process."""
    torch.set_num_threads(int(arguments[0]))
    for _ in range(int(arguments[1])):
        print(json.dumps(fit_and_tell()))


if __name__ == "__main__":
    main(sys.argv[1:])
