"""Two fits into one folder: the first succeeds, the second gets an error with the reason."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from leapts import LeapTS, LeapTSError
from leapts.forecasting import fit as fitting
from leapts_qa.forks import Ended, in_fork
from leapts_qa.full_disk import said
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

UNITS = ("checkpoint", "checkpoint, resumed", "command line", "command line, over a model")

Forecast = dict[str, Any]  # {"values": [...]} or {"refused": message}


def run(unit: str, folder: Path) -> Outcome:
    """Start a fit while another trains into the same folder, and again after that has ended."""
    outcome = Outcome()
    waves().to_csv(folder / "waves.csv", index=False)
    contested = folder / "contested"
    if unit == "command line, over a model":
        forecaster().fit(waves()).save(contested)
    alone = [fit(unit, folder / f"alone {seed}", seed) for seed in (1, 2)]
    second = partial(fit, unit, contested, 2)
    with _while_training(lambda: in_fork(second)) as meanwhile:
        first = fit(unit, contested, 1)
    refused = meanwhile[0].value or {}
    message = refused.get("refused", "")
    _say(first == alone[0], "first fit unaffected", f"{unit}: the first became {first}", outcome)
    is_plain = f"{contested} is in use by another fit; wait" in message and "\n" not in message
    _say(is_plain, "second fit refused in one line", f"{unit}: the second: {meanwhile[0]}", outcome)
    _say(second() == alone[1], "folder free afterwards", f"{unit}: not free afterwards", outcome)
    return outcome


def fit(unit: str, folder: Path, seed: int) -> Forecast:
    """Fit into a folder in one of two ways, and forecast."""
    if unit.startswith("checkpoint"):
        model = forecaster(random_seed=seed, max_steps=4)
        try:
            # The second finds the state of a finished fit with another seed, and must start from the beginning.
            model.fit(waves(), checkpoint_dir=folder, resume=unit.endswith("resumed") and seed == 1)
        except LeapTSError as error:
            return {"refused": str(error)}
        return {"values": model.predict()["LeapTS"].tolist()}
    few = ["--horizon", "3", "--input-size", "6", "--max-steps", "4", "--seed", str(seed)]
    code, _, complaint = said(["fit", str(folder.parent / "waves.csv"), *few, "--out", str(folder)])
    if code:
        return {"refused": complaint.strip() if code == 2 else f"code {code}\n{complaint}"}
    return {"values": LeapTS.load(folder).predict()["LeapTS"].tolist()}


@contextmanager
def _while_training(act: Callable[[], Ended]) -> Iterator[list[Ended]]:
    """Call a function once when training begins, in this process only."""
    train, process, done = vars(fitting)["train_with_distillation"], os.getpid(), list[Ended]()

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if os.getpid() == process and not done:
            done.append(act())
        return train(*arguments, **options)

    vars(fitting)["train_with_distillation"] = interrupted
    try:
        yield done
    finally:
        vars(fitting)["train_with_distillation"] = train


def _say(holds: bool, end: str, failure: str, outcome: Outcome) -> None:
    outcome.count(end) if holds else outcome.fail(failure)
