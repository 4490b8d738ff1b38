"""LeapTS as a forecasting model of fev, on local Parquet files."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fev", reason="fev is not installed")
with warnings.catch_warnings(action="ignore"):
    import fev

from leapts import LeapTS
from leapts.errors import ConfigError
from leapts.integrations.fev import LeapTSModel
from leapts_bench.gift import fev_bench
from leapts_bench.gift.forecasters import LeapTSDefaults
from leapts_bench.gift.scoring import fev_scores
from leapts_bench.gift.series import LEVELS, Task
from tests.bench.published_data import folder_with
from tests.forecasting.frames import LOOKBACK, H, make_frame

OPTIONS: dict[str, Any] = {"input_size": LOOKBACK, "max_steps": 20, "batch_size": 16, "model": {"hidden_size": 8}}
METRICS = ["SQL", "MASE", "WQL", "WAPE"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))


def make_task(file: Path, frame: pd.DataFrame, **options: Any) -> fev.Task:
    frame.to_parquet(file)
    names = {"id_column": "unique_id", "timestamp_column": "ds", "target": "y", "horizon": H}
    return loaded(fev.Task(str(file), eval_metric="SQL", extra_metrics=METRICS[1:], **names | options))


def loaded(task: fev.Task) -> fev.Task:
    """Load the data of a task: fev does so in processes of its own, which the library may not start."""
    task.load_full_dataset()
    return task


def test_every_window_is_forecast_from_its_own_past_by_one_model(tmp_path: Path) -> None:
    frame = make_frame()
    task = make_task(tmp_path / "data.parquet", frame, num_windows=2, quantile_levels=[0.1, 0.5, 0.9])
    model = LeapTSModel(**OPTIONS)
    predictions = model.fit_predict(task)
    past = [frame.groupby("unique_id").head(-steps) for steps in (2 * H, H)]
    fitted = LeapTS(H, **OPTIONS).fit(past[0])
    for window, history in zip(predictions, past, strict=True):
        expected = fitted.predict(history, quantiles=[0.1, 0.5, 0.9])
        for name, column in {"predictions": "LeapTS", "0.9": expected.columns[-1]}.items():
            np.testing.assert_allclose(np.ravel(window["y"][name]), expected[column], rtol=1e-5)
    assert model.training_time > 0
    assert model.inference_time > 0
    summary = task.evaluation_summary(predictions, model_name="leapts", trained_on_this_dataset=False)
    assert np.isfinite([summary[metric] for metric in METRICS]).all()


def test_several_targets_are_series_of_one_model_and_other_columns_do_not_matter(tmp_path: Path) -> None:
    wide = make_frame().pivot(index="ds", columns="unique_id", values="y").reset_index()
    task = make_task(
        tmp_path / "wide.parquet",
        wide.assign(unique_id="item", promotion=1.0, weather=2.0),
        target=["c", "a"],
        known_dynamic_columns=["promotion"],
        past_dynamic_columns=["weather"],
        quantile_levels=[0.5],
    )
    (window,) = LeapTSModel(**OPTIONS).fit_predict(task)
    past = make_frame().query("unique_id != 'b'").groupby("unique_id").head(-H)
    expected = LeapTS(H, **OPTIONS).fit(past).predict().set_index("unique_id")["LeapTS"]
    for name in ("a", "c"):
        np.testing.assert_allclose(np.ravel(window[name]["predictions"]), expected[name], rtol=1e-5)


def test_a_task_without_quantiles_gets_points(tmp_path: Path) -> None:
    frame = make_frame().rename(columns={"y": "target"})
    task = make_task(tmp_path / "data.parquet", frame, target="target", quantile_levels=LEVELS)
    task = loaded(fev.Task(**task.to_dict() | {"quantile_levels": [], "eval_metric": "MASE", "extra_metrics": []}))
    (window,) = LeapTSModel(**OPTIONS).fit_predict(task)
    assert window["target"].column_names == ["predictions"]


def test_fev_finds_the_model_by_its_name() -> None:
    assert fev.ForecastingModel.get_model_cls("leapts") is LeapTSModel


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="input_size"):
        LeapTSModel(context_length=24)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uci_air_quality_1D", "epf_np", "rossmann_1W"])
def test_fev_bench_by_fev_equals_our_harness(name: str, tmp_path: Path) -> None:
    task = fev_bench.load(name, folder_with(fev_bench.files_of(name)))
    expected = fev_scores(task, LeapTSDefaults(seed=1).forecasts(task))
    predictions = LeapTSModel(random_seed=1).fit_predict(theirs := _as_fev_task(task, tmp_path / "data.parquet"))
    summary = theirs.evaluation_summary(predictions, model_name="leapts")
    assert {metric.lower(): summary[metric] for metric in METRICS} == pytest.approx(expected, rel=1e-6)


def _as_fev_task(task: Task, file: Path) -> fev.Task:
    targets: Sequence[str] = [f"target {number}" for number in range(task.targets)]
    frame = task.frame(task.series)
    frame["column"] = frame["unique_id"].map(lambda place: targets[place % task.targets])
    frame["unique_id"] = frame["unique_id"].map(lambda place: f"{place // task.targets:04}")
    wide = frame.pivot(index=["unique_id", "ds"], columns="column", values="y").reset_index()
    return make_task(
        file,
        wide,
        target=targets[0] if task.targets == 1 else list(targets),
        horizon=task.horizon,
        num_windows=task.count,
        seasonality=task.season,
        quantile_levels=list(LEVELS),
    )
