"""Values at the limits of floating point, and diverging training: finite forecasts, or an error with the reason."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import safetensors.torch
import torch

from leapts import LeapTS, LeapTSError, TrainingError
from leapts.forecasting.predictor import Predictor
from leapts.model.build import build_model
from leapts.training.checkpoint import FILE_NAME
from leapts_qa.outcome import Outcome
from leapts_qa.samples import TINY, forecaster, waves

CASES_A_UNIT = 50
VALUE_UNITS = tuple(f"seed {seed}" for seed in range(8))
DIVERGENCE_UNITS = tuple(f"seed {seed}" for seed in range(4))

Floats = npt.NDArray[np.float64]
_LENGTH = 48
_NORMALIZATIONS = ("mean", "last", "none")

_SHAPES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "noise": lambda rng: rng.normal(size=_LENGTH),
    "noise on a level": lambda rng: 1 + rng.normal(size=_LENGTH) * 10.0 ** rng.integers(-17, 0),
    "constant": lambda rng: np.full(_LENGTH, rng.normal()),
    "zero": lambda rng: np.zeros(_LENGTH) * rng.normal(),
    "one spike": lambda rng: _spiked(rng.normal(size=_LENGTH), rng, 1),
    "spikes on zero": lambda rng: _spiked(np.zeros(_LENGTH), rng, 5),
    "a spike on a constant": lambda rng: _spiked(np.ones(_LENGTH), rng, 1),
    "a step": lambda rng: 10.0 ** rng.integers(-20, 20) * np.linspace(0, 1, _LENGTH).round(),
    "growing without end": lambda rng: np.exp(np.linspace(0, rng.uniform(-600, 600), _LENGTH)),
    "up and down": lambda rng: rng.normal() * np.cos(np.pi * np.arange(_LENGTH)),
    "of every size": lambda rng: rng.normal(size=_LENGTH) * 10.0 ** rng.uniform(-300, 25, size=_LENGTH),
}


def _spiked(values: Floats, rng: np.random.Generator, count: int) -> Floats:
    values[rng.integers(_LENGTH, size=count)] = 10.0 ** rng.uniform(0, 30, size=count)
    return values


def run_values(unit: str, folder: Path, *, cases: int = CASES_A_UNIT) -> Outcome:  # noqa: ARG001
    """Forecast extreme values with models fitted on others, on them, and on none; whole histories and short ones."""
    outcome = Outcome()
    ordinary = {name: forecaster(model={**TINY, "normalization": name}).fit(waves()) for name in _NORMALIZATIONS}
    ordinary["masked"] = forecaster(model={**TINY, "mask": True}).fit(waves())
    unfitted = LeapTS.pretrained(3, freq="D")
    for number in range(cases):
        rng = np.random.default_rng([int(unit.split()[1]), number])
        frame, what = made_up(rng)
        normalization = str(rng.choice(_NORMALIZATIONS))
        judge(f"{unit} {number}, {what}, forecast", lambda: ordinary[normalization].predict(frame), outcome)  # noqa: B023
        fresh = forecaster(model={**TINY, "normalization": normalization})
        asked: dict[str, Any] = {"level": [80, 99.9], "n_samples": 2}
        judge(f"{unit} {number}, {what}, fitted", lambda: fresh.fit(frame).predict(**asked), outcome)  # noqa: B023
        short = frame.groupby("unique_id").tail(int(rng.integers(1, _LENGTH)))
        judge(f"{unit} {number}, {what}, short", lambda: ordinary["masked"].predict(short, **asked), outcome)  # noqa: B023
        judge(f"{unit} {number}, {what}, unfitted", lambda: unfitted.predict(short, **asked), outcome)  # noqa: B023
    return outcome


def made_up(rng: np.random.Generator) -> tuple[pd.DataFrame, str]:
    """Generate two series of random shape and magnitude."""
    values, names = [], []
    for _ in range(2):
        shape = str(rng.choice(list(_SHAPES)))
        exponent = int(rng.choice([rng.integers(-323, 300), rng.integers(-5, 30)]))
        with np.errstate(over="ignore", under="ignore"):
            drawn = _SHAPES[shape](rng) * 10.0**exponent
        values.append(np.clip(drawn, -1e300, 1e300))
        names.append(f"{shape} x 1e{exponent}")
    return waves().assign(y=np.concatenate(values)), " and ".join(names)


def judge(what: str, act: Callable[[], pd.DataFrame], outcome: Outcome) -> None:
    """Check for numbers, or one of our errors in one line."""
    try:
        forecast = act()
    except LeapTSError as error:
        if "\n" in str(error):
            outcome.fail(f"{what}: more than one line: {error}")
        else:
            outcome.count("training stopped" if isinstance(error, TrainingError) else "refused with a reason")
        return
    except Exception as error:
        outcome.fail(f"{what}: {error!r}")
        return
    if np.isfinite(forecast.drop(columns=["unique_id", "ds"]).to_numpy()).all():
        outcome.count("finite forecast")
    else:
        outcome.fail(f"{what}: forecasts that are no numbers")


def run_divergence(unit: str, folder: Path, *, cases: int = CASES_A_UNIT) -> Outcome:
    """Train at learning rates that make training diverge."""
    outcome = Outcome()
    for number in range(cases):
        rng = np.random.default_rng([int(unit.split()[1]), number])
        options: dict[str, Any] = {
            "learning_rate": 10.0 ** rng.choice([rng.uniform(-2, 6), rng.uniform(6, 38)]),
            "max_steps": int(rng.integers(1, 9)),
            "random_seed": number,
            "val_size": int(rng.choice([0, 9])),
            "training": {
                "gradient_clip": 10.0 ** rng.uniform(0, 38),
                "val_check_steps": int(rng.integers(1, 5)),
                "huber_delta": 10.0 ** rng.uniform(-3, 30),
            },
            "model": {**TINY, "normalization": str(rng.choice(_NORMALIZATIONS)), "linear_path": False},
            "combine": "none",  # which would change the weights after training
        }
        problem, end = diverging(forecaster(**options), folder / str(number))
        if problem:
            rate = options["learning_rate"]
            outcome.fail(f"{unit} {number}, learning rate {rate:.2g}, {options['max_steps']} steps: {problem}")
        else:
            outcome.count(end)
    return outcome


def diverging(model: LeapTS, folder: Path) -> tuple[str, str]:
    """Fit, and return what is wrong with its end, if anything, and how it ended."""
    end = "training finished"
    try:
        model.fit(waves(), checkpoint_dir=folder)
    except TrainingError as error:
        report = model.report_
        kept = f"the weights of step {report.best_step} are kept; try a learning_rate below"
        if kept not in str(error) or "\n" in str(error):
            return f"said {error}", ""
        end = "divergence reported, last good weights kept"
    except Exception as error:
        return repr(error), ""
    weights = model.predictor_.model.state_dict()
    good = _last_good(model.predictor_, folder)
    if not all(torch.equal(value, good[name]) for name, value in weights.items()):
        return "other weights than the last that were good", ""
    try:
        forecast = model.predict(waves())["LeapTS"].to_numpy()
    except Exception as error:
        return f"then {error!r}", ""
    return ("" if np.isfinite(forecast).all() else "then forecasts no numbers"), end


def _last_good(fitted: Predictor, folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights to keep according to the training state; before the first check, the initial ones."""
    if not (folder / FILE_NAME).exists():
        return build_model(fitted.config, seed=fitted.training.random_seed, clusters=fitted.clusters).state_dict()
    state = safetensors.torch.load((folder / FILE_NAME).read_bytes())
    return {name.removeprefix("kept."): value for name, value in state.items() if name.startswith("kept.")}
