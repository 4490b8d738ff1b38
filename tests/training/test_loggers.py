"""Loggers write the losses and validation errors of training."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from leapts import ConfigError, LeapTS
from leapts.training.loggers import MlflowLog, TensorBoardLog, together
from leapts.training.loop import TrainingStep
from tests.forecasting.frames import make_forecaster, make_frame


def fitted(progress: Any) -> LeapTS:
    training = {"val_check_steps": 10}
    return make_forecaster(max_steps=25, training=training).fit(make_frame({"a": 90}), progress=progress)


def test_combined_callbacks_are_called_in_order() -> None:
    heard: list[tuple[str, int]] = []
    tell = together(lambda step: heard.append(("one", step.step)), lambda step: heard.append(("two", step.step)))
    tell(TrainingStep(1, 2, 0.5, None, None))
    assert heard == [("one", 1), ("two", 1)]


@pytest.mark.parametrize("module", ["tensorboard", "mlflow"])
def test_a_missing_extra_is_named(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Modules that are imported already would hide that the package is missing.
    for name in [name for name in sys.modules if name.split(".")[0] == module or name == "torch.utils.tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'leapts\[{module}\]'"):
        TensorBoardLog(tmp_path) if module == "tensorboard" else MlflowLog()
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_has_every_validation_error_and_some_losses(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoardLog(tmp_path / "run", every=10) as log:
        report = fitted(log).report_
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 10, 20, 25]
    shown = [(event.step, event.value) for event in events.Scalars("validation")]
    assert [step for step, _ in shown] == [10, 20, 25]
    assert shown == [(step, pytest.approx(value)) for step, value in report.validations]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised inside MLflow's dependencies
def test_mlflow_has_every_validation_error_and_some_losses(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = mlflow.create_experiment("tests", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment) as run:
        report = fitted(MlflowLog(every=10)).report_
    client = mlflow.MlflowClient()
    history = {name: client.get_metric_history(run.info.run_id, name) for name in ("loss", "validation")}
    assert [metric.step for metric in history["loss"]] == [1, 10, 20, 25]
    assert [(metric.step, metric.value) for metric in history["validation"]] == report.validations
    other = client.create_run(experiment).info.run_id
    fitted(MlflowLog(other))
    assert len(client.get_metric_history(other, "validation")) == 3


def test_mlflow_gets_losses_with_step_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[dict[str, float], int, str | None]] = []

    def log_metrics(values: dict[str, float], step: int, run_id: str | None) -> None:
        told.append((values, step, run_id))

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(log_metrics=log_metrics))
    log = MlflowLog("a run", every=10)
    for step in (9, 10):
        log(TrainingStep(step, 20, 0.5, None, None))
    assert [(step, run) for _, step, run in told] == [(10, "a run")]
    assert list(told[0][0].values()) == [0.5]


def test_no_mlflow_run_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    runs = [types.SimpleNamespace(info=types.SimpleNamespace(run_id="active")), None]

    def log_metrics(_: dict[str, float], *, step: int, run_id: str) -> None:
        assert step == 1
        told.append(run_id)

    stub = types.SimpleNamespace(active_run=lambda: runs.pop(0), log_metrics=log_metrics)
    monkeypatch.setitem(sys.modules, "mlflow", stub)
    log = MlflowLog()
    log(TrainingStep(1, 20, 0.5, None, None))
    with pytest.raises(ConfigError, match="no MLflow run is active"):
        log(TrainingStep(20, 20, 0.5, None, None))
    assert told == ["active"]
