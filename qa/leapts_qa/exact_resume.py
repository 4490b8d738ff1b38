"""Fits killed at random moments and resumed: the result equals that of an uninterrupted fit."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from leapts.training.checkpoint import FILE_NAME
from leapts.training.loop import TrainingStep
from leapts_qa.forks import in_fork
from leapts_qa.outcome import Outcome
from leapts_qa.samples import TINY, forecaster, waves

KILLS_A_UNIT = 20
UNITS = tuple(f"seed {seed}" for seed in range(10))
STEPS = 16

# Different trainings: all state cells, clusters, and one that stops early.
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"model": {**TINY, "state": "lstm"}},
    {"model": {**TINY, "mixing": "mlp", "state": {"kind": "cde", "clusters": 2}}},
    {"model": {**TINY, "state": "rnn"}, "learning_rate": 0.5, "training": {"val_check_steps": 2, "patience": 2}},
    {"val_size": 0},
)

Course = dict[str, Any]  # digests of the result of a fit, and the progress of its steps


def run(unit: str, folder: Path, *, kills: int = KILLS_A_UNIT) -> Outcome:
    """Kill fits, resume them, and compare.

    Args:
        unit: The seed of the kills and of the training options.
        folder: A folder to work in.
        kills: Number of fits.
    """
    seed = int(unit.rpartition(" ")[2])
    rng = np.random.default_rng(seed)
    options = KINDS[seed % len(KINDS)]
    train(options, folder / "warm", None)  # fill caches first
    whole = in_fork(partial(train, options, folder / "whole", None)).value
    outcome = Outcome()
    for number in range(kills):
        place = folder / str(number)
        times = 1 + (number % 4 == 3)  # some are killed again after resuming
        killed = sum(killed_fit(partial(train, options, place), len(whole["steps"]), rng) for _ in range(times))
        resumed = in_fork(partial(train, options, place, None))
        what = f"{unit}, fit {number}, killed {killed} times"
        if not killed:
            outcome.fail(f"{what}: it ended before it could be")
        elif resumed.error or resumed.signal or resumed.hung:
            outcome.fail(f"{what}: {resumed.error or 'did not end'}")
        else:
            judge(resumed.value, whole, what, outcome)
    return outcome


def judge(resumed: Course, whole: Course, what: str, outcome: Outcome) -> None:
    """Check that all digests and the progress of repeated steps are the same."""
    others = [name for name in whole if name != "steps" and resumed[name] != whole[name]]
    again = resumed["steps"]
    if others:
        outcome.fail(f"{what}: other {', '.join(others)}")
    elif again != whole["steps"][len(whole["steps"]) - len(again) :]:
        outcome.fail(f"{what}: another course of losses")
    else:
        how = "resumed" if len(again) < len(whole["steps"]) else "killed before the first checkpoint"
        outcome.count(f"{how}: equal to an uninterrupted fit")


def train(options: dict[str, Any], folder: Path, telling: int | None) -> Course:
    """Fit, resuming from the folder, and return digests of the result.

    Args:
        options: Options of the forecaster.
        folder: The folder of the training state.
        telling: A pipe that receives the progress of each step.
    """
    steps: list[list[float | None]] = []

    def heard(step: TrainingStep) -> None:
        steps.append([step.step, step.loss, step.validation, step.best])
        if telling is not None:
            os.write(telling, b".")

    given = {"max_steps": STEPS, "training": {"val_check_steps": 3, "patience": 0}, **options}
    model = forecaster(**given).fit(waves(), checkpoint_dir=folder, resume=True, progress=heard)
    model.save(folder.with_name(f"{folder.name}-model"))
    state = safetensors.torch.load((folder / FILE_NAME).read_bytes())
    return {
        "weights": _digest({name: value for name, value in state.items() if not name.startswith("optimizer.")}),
        "optimiser": _digest({name: value for name, value in state.items() if name.startswith("optimizer.")}),
        "metrics": json.dumps(model.report_.to_dict()),
        "random state": _of_chance(),
        "checkpoint": hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest(),
        "model folder": _of_folder(folder.with_name(f"{folder.name}-model")),
        "steps": steps,
    }


def killed_fit(fit: Callable[[int], Course], steps: int, rng: np.random.Generator) -> bool:
    """Fit in a fork of this process and kill it at a random moment of a random step; return False if it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        fit(writing)
        os._exit(0)
    os.close(writing)
    started = time.monotonic()
    # A resumed fit may have fewer steps left than this, and end before.
    for _ in range(int(rng.integers(0, steps - 1))):
        if not os.read(reading, 1):
            break
    time.sleep(rng.uniform(0, 1.2) * (time.monotonic() - started) / steps)
    os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _digest(tensors: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].numpy().tobytes())
    return f"{len(tensors)} {digest.hexdigest()}"


def _of_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def _of_chance() -> str:
    """Return digests of the global random generators, which training must not use."""
    numpy_state = repr(np.random.get_state())  # noqa: NPY002 - the shared one is meant
    return hashlib.sha256(torch.get_rng_state().numpy().tobytes() + numpy_state.encode()).hexdigest()
