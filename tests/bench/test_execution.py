import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from leapts.errors import ConfigError
from leapts.training.distillation import train_with_distillation
from leapts.training.loop import TrainingStep
from leapts_bench import execution, fitting, results
from leapts_bench.execution import execute, work, work_all
from leapts_bench.fitting import fit
from leapts_bench.protocol import prepare
from leapts_bench.runs import BaselineDesign, NaiveDesign, Run
from tests.bench.conftest import TINY, tiny_run

RUNS = [tiny_run(seed=seed) for seed in (1, 2)]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of executed runs, without the work."""
    keys: list[str] = []

    def pretend(run: Run, kept: Path | None) -> results.Line:  # noqa: ARG001
        keys.append(run.key)
        return {"key": run.key, "test": {"mse": 1.0, "mae": 1.0}, "seconds": {"fit": 0.0}}

    monkeypatch.setattr(execution, "execute", pretend)
    return keys


def _work_on_all(runs: Sequence[Run], target: Path) -> list[str]:
    return [work(run, target) for run in runs]


def test_a_result_has_all_fields_of_the_tables() -> None:
    line = execute(RUNS[0])
    assert line["key"] == RUNS[0].key
    assert Run(**line["run"]) == RUNS[0]
    assert line["test"]["windows"] == 292 - 12 + 1
    assert 0 < line["test"]["mae"] < 3
    assert 1 <= line["test"]["leaps"] <= 4
    assert line["parameters"] > 100
    assert line["memory"]["peak"] >= line["memory"]["imports"] > 0
    assert line["seconds"]["fit"] > 0


def test_the_naive_forecast_needs_no_training() -> None:
    """Scored by the benchmark and by hand: errors of the last value on the scaled test part."""
    line = execute(RUNS[0].model_copy(update={"model": NaiveDesign()}))
    data = prepare("SeattleWeather", input_size=24, horizon=RUNS[0].horizon)
    windows = data.test()
    batch = windows.gather(torch.arange(len(windows)))
    error = (batch.history[..., -1:] - batch.target).double()
    assert line["test"]["windows"] == len(windows)
    assert line["test"]["mse"] == pytest.approx(error.square().mean().item())
    assert line["test"]["mae"] == pytest.approx(error.abs().mean().item())
    assert line["parameters"] == 0


def test_an_ensemble_forecasts_the_mean_of_its_members() -> None:
    """Each member equals a single model; seeds follow those of the previous run."""
    mean = TINY.ensemble(2).run("SeattleWeather", input_size=24, horizon=12, seed=2)
    data = prepare("SeattleWeather", input_size=24, horizon=12)
    alone = [fit(tiny_run(seed=seed), data) for seed in (3, 4)]
    together = fit(mean, data)
    history = data.validation().gather(torch.arange(5)).history
    said = [each.predictor.predict(history) for each in alone]
    predicted = together.predictor.predict(history)
    torch.testing.assert_close(predicted.values, (said[0].values + said[1].values) / 2)
    assert predicted.leaps is not None
    assert (
        predicted.leaps.tolist()
        == torch.stack([each.leaps.double() for each in said if each.leaps is not None]).mean(0).tolist()
    )
    assert together.parameters == 2 * alone[0].parameters
    assert together.report == {"members": [each.report for each in alone]}


def test_the_same_run_gives_the_same_figures() -> None:
    first, second = execute(RUNS[0]), execute(RUNS[0])
    assert first["test"] == second["test"]


def test_a_result_has_the_commit_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = iter(["before", "amid", "after", "much later"])
    monkeypatch.setattr(results, "provenance", lambda: {"commit": next(commits), "changed": False})
    assert execute(tiny_run())["commit"] == "before"
    assert execution.trial(tiny_run())["commit"] == "amid"


def test_finished_runs_are_never_repeated(folder: Path, executed: list[str]) -> None:
    _work_on_all(RUNS, folder / "main.jsonl")
    again = _work_on_all([*RUNS, tiny_run(seed=3)], folder / "main.jsonl")
    assert again[:2] == ["done before", "done before"]
    assert executed == [run.key for run in [*RUNS, tiny_run(seed=3)]]


def test_a_run_of_two_suites_is_done_once(folder: Path, executed: list[str]) -> None:
    _work_on_all(RUNS, folder / "main.jsonl")
    _work_on_all(RUNS, folder / "seeds.jsonl")
    assert len(executed) == 2
    assert results.read(folder / "seeds.jsonl") == []


def test_a_run_in_progress_elsewhere_is_skipped(folder: Path, executed: list[str]) -> None:
    with results.claimed(folder, RUNS[0].key):
        assert work(RUNS[0], folder / "main.jsonl") == "in work elsewhere"
    assert executed == []


@pytest.mark.slow
def test_a_killed_suite_resumes_without_loss_or_repetition(folder: Path) -> None:
    target = folder / "main.jsonl"
    runs = [tiny_run(seed=seed) for seed in (1, 2)]
    program = (
        "import sys; from pathlib import Path; from leapts_bench.execution import work_all; "
        "from leapts_bench.runs import Run; "
        "work_all([Run.model_validate_json(text) for text in sys.argv[2:]], Path(sys.argv[1]), workers=1, tell=print)"
    )
    command = [sys.executable, "-c", program, str(target), *(run.model_dump_json() for run in runs)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not results.read(target) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = results.read(target)
    assert 1 <= len(before) < len(runs)

    assert work_all(runs, target, workers=2, tell=lambda _: None) == 0
    after = results.read(target)
    assert after[: len(before)] == before
    assert sorted(line["key"] for line in after) == sorted(run.key for run in runs)


class Killed(BaseException):
    """Simulates the end of a process."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The training steps; the process ends at the fifth of ten the first time."""
    made: list[int] = []

    def heard(step: TrainingStep) -> None:
        made.append(step.step)
        if step.step == 5 and made.count(5) == 1:
            raise Killed

    monkeypatch.setattr(fitting, "train_with_distillation", partial(train_with_distillation, progress=heard))
    monkeypatch.setattr(results, "provenance", lambda: {"commit": "c0ffee", "changed": False})
    return made


LONGER = TINY.training.model_copy(update={"epochs": 1.0, "batch_size": 100, "looks": 5})
TO_GO_ON = [
    RUNS[0].model_copy(update={"training": LONGER}),
    RUNS[0].model_copy(update={"training": LONGER, "model": BaselineDesign(name="AMD")}),
]
DISTILLED = RUNS[0].model_copy(update={"training": LONGER.model_copy(update={"teachers": 1})})


@pytest.mark.parametrize("run", TO_GO_ON, ids=lambda run: run.model_name)
def test_a_run_killed_during_training_resumes_to_the_same_figures(folder: Path, steps: list[int], run: Run) -> None:
    target = folder / "main.jsonl"
    with pytest.raises(Killed):
        work(run, target)
    work(run, target)
    assert steps == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]
    (line,) = results.read(target)
    whole = execute(run)
    assert (line["test"], line["validation"], line["training"]) == (
        whole["test"],
        whole["validation"],
        whole["training"],
    )
    assert line["seconds"]["fit"] is None
    assert whole["seconds"]["fit"] > 0
    assert not [*folder.rglob("*.safetensors")]


@pytest.mark.slow
def test_a_distilled_run_killed_during_its_teachers_resumes(folder: Path, steps: list[int]) -> None:
    target = folder / "distilled.jsonl"
    with pytest.raises(Killed):
        work(DISTILLED, target)
    work(DISTILLED, target)
    assert steps == [1, 2, 3, 4, 5, *range(5, 31)]  # ten of the teacher, twenty of the student
    (line,) = results.read(target)
    assert line["test"] == execute(DISTILLED)["test"] != execute(TO_GO_ON[0])["test"]
    assert line["parameters"] == execute(TO_GO_ON[0])["parameters"]


@pytest.mark.parametrize("code", [{"commit": "decaf", "changed": False}, {"commit": "c0ffee", "changed": True}])
def test_a_run_does_not_resume_from_the_state_of_other_code(
    folder: Path, steps: list[int], monkeypatch: pytest.MonkeyPatch, code: results.Line
) -> None:
    target = folder / "main.jsonl"
    with pytest.raises(Killed):
        work(TO_GO_ON[0], target)
    monkeypatch.setattr(results, "provenance", lambda: code)
    steps.clear()
    with pytest.raises(Killed):
        work(TO_GO_ON[0], target)
    assert steps == [1, 2, 3, 4, 5]


def test_a_failed_run_is_counted_and_the_others_are_done(folder: Path) -> None:
    heard: list[str] = []
    broken = RUNS[0].model_copy(update={"model": BaselineDesign(name="nobody")})
    failed = work_all([broken, RUNS[1]], folder / "main.jsonl", workers=2, tell=heard.append)
    assert failed == 1
    assert [line["key"] for line in results.read(folder / "main.jsonl")] == [RUNS[1].key]
    assert any("there is no baseline 'nobody'" in message for message in heard)


def test_an_unknown_baseline_is_refused() -> None:
    run = RUNS[0].model_copy(update={"model": BaselineDesign(name="nobody")})
    data = prepare(run.dataset, input_size=run.input_size, horizon=run.horizon)
    with pytest.raises(ConfigError, match="there is no baseline 'nobody'"):
        fit(run, data)
