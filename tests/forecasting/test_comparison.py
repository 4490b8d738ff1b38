"""A comparison is a back-test in which every model sees the same past."""

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from torch import Tensor

from leapts import ConfigError, DataError, LeapTS
from leapts.data.validation import read_panel
from leapts.forecasting.baselines import Naive, SeasonalNaive
from leapts.forecasting.comparison import Comparison, compare

H, WINDOWS, STEP = 4, 3, 2


def waves() -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=60)
    noise = np.random.default_rng(0).normal(size=(2, 60))
    wave = np.sin(np.arange(60) * 2 * np.pi / 7)
    frames = [
        pd.DataFrame({"unique_id": name, "ds": days, "y": wave + row}) for name, row in zip("ab", noise, strict=True)
    ]
    return pd.concat(frames)


def compared(frame: Any) -> Comparison:
    model = LeapTS(H, 8, max_steps=2)
    panel = read_panel(frame)
    return compare(model, panel, [SeasonalNaive(7), Naive()], n_windows=WINDOWS, season=7, step_size=STEP, level=[80])


def test_every_baseline_forecasts_from_the_cutoff_of_its_row() -> None:
    data = waves()
    rows = compared(data).frame
    assert len(rows) == 2 * WINDOWS * H
    known = data.set_index(["unique_id", "ds"])["y"]
    for row in rows.itertuples():
        assert row.Naive == known[row.unique_id, row.cutoff]
        week_before = row.ds - pd.Timedelta(days=7)
        assert row.SeasonalNaive == known[row.unique_id, week_before]
        assert week_before <= row.cutoff


def test_the_models_own_columns_are_those_of_its_cross_validation() -> None:
    alone = LeapTS(H, 8, max_steps=2).cross_validation(waves(), WINDOWS, step_size=STEP, level=[80])
    pd.testing.assert_frame_equal(compared(waves()).frame[list(alone.columns)], alone)


def test_a_baseline_that_can_make_nothing_of_the_data_is_left_out() -> None:
    class Choosy:
        name = "Choosy"

        def forecast(self, values: Tensor, offsets: Tensor, h: int) -> Tensor:  # noqa: ARG002
            raise DataError("Choosy likes no series; leave it out")

    with pytest.warns(UserWarning, match="^not compared with Choosy: Choosy likes no series"):
        found = compare(LeapTS(H, 8, max_steps=2), read_panel(waves()), [Choosy(), Naive()], n_windows=1, season=7)
    assert [score.name for score in found.scores] == ["LeapTS", "LeapTS (coarse)", "Naive"]
    assert "Choosy" not in found.frame


def test_a_back_test_says_by_itself_what_it_needs() -> None:
    values = pd.DataFrame({"ds": range(6), "y": [1.0, 3.0, 2.0, 5.0, 4.0, 6.0]})
    model = LeapTS(2, max_steps=1)
    with pytest.raises(DataError, match=r"has 5 values, but a backtest with 1 window of 2 steps.* needs 6"):
        model.cross_validation(values[:5])
    assert len(model.cross_validation(values)) == 2


def test_intervals_of_point_forecasts_are_refused_before_the_fit() -> None:
    model = LeapTS(H, 8, max_steps=2, val_size=0, loss="huber")
    with pytest.raises(ConfigError, match="no windows were held out"):
        model.cross_validation(waves(), level=[80, 99], progress=lambda *_: pytest.fail("it was fitted"))


@pytest.mark.parametrize("options", [{"val_size": 0}, {"val_size": 12}, {"val_size": 40, "input_size": 4}])
@pytest.mark.parametrize("loss", ["quantile", "huber"])
def test_few_held_out_windows_give_every_level_all_the_same(options: dict[str, Any], loss: Any) -> None:
    if loss == "huber" and not options["val_size"]:
        return
    model = LeapTS(H, **{"input_size": 8, "max_steps": 2, "loss": loss, **options})
    found = model.cross_validation(waves(), level=[80, 99])
    ordered = found[["LeapTS-lo-99", "LeapTS-lo-80", "LeapTS", "LeapTS-hi-80", "LeapTS-hi-99"]].to_numpy()
    assert (np.diff(ordered, axis=1) >= 0).all()


def test_no_model_sees_across_a_gap_what_its_cutoff_hides() -> None:
    data = waves()
    day = data.groupby("unique_id").cumcount()
    data.loc[(day >= 50) & (day < 56), "y"] = np.nan
    moved = data.copy()
    moved.loc[day >= 56, "y"] += 1000
    model = LeapTS(4.0, 8, max_steps=2, fill="interpolate")  # type: ignore[arg-type]  # as a search over floats has it
    frames = [
        compare(model, model.read(frame), [Naive()], n_windows=1, season=7).frame[["LeapTS", "Naive"]]
        for frame in (data, moved)
    ]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize("alias", ["LeapTS", "Naive"])
def test_baselines_of_one_name_or_the_models_are_refused(alias: str) -> None:
    baselines = [SeasonalNaive(7), SeasonalNaive(14)] if alias == "LeapTS" else [Naive()]
    with pytest.raises(ConfigError, match="has the name of another column"):
        compare(LeapTS(H, 8, alias=alias), read_panel(waves()), baselines, n_windows=1, season=7)


@pytest.mark.parametrize("name", ["y", "ds", "unique_id", "cutoff", "LeapTS-lo-80"])
def test_a_baseline_takes_no_other_columns_place(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' has the name of another column"):
        compare(LeapTS(H, 8), read_panel(waves()), [Naive(name)], n_windows=1, season=7, level=[80])


def test_scores_are_of_the_frame() -> None:
    result = compared(waves())
    ours, coarse, seasonal, naive = result.scores
    assert [score.name for score in result.scores] == ["LeapTS", "LeapTS (coarse)", "SeasonalNaive", "Naive"]
    rows = result.frame
    assert naive.mae == pytest.approx((rows["Naive"] - rows["y"]).abs().mean())
    inside = (rows["LeapTS-lo-80"] <= rows["y"]) & (rows["y"] <= rows["LeapTS-hi-80"])
    assert ours.coverage == {80: pytest.approx(inside.mean())}
    assert (coarse.coverage, seasonal.coverage) == ({}, {})


@pytest.mark.parametrize("refit", [False, True])
def test_the_coarse_forecast_is_the_models_own_at_every_cutoff(refit: bool) -> None:
    data, fits = waves(), list[LeapTS]()
    panel = read_panel(data)
    frame = compare(
        LeapTS(H, 8, max_steps=2, model={"linear_path": False}),
        panel,
        [],
        n_windows=2,
        season=7,
        refit=refit,
        on_fit=fits.append,
    ).frame
    last = panel.slice(-H - 8, -H)
    predictor = fits[-1].predictor_
    expected = predictor.predict(predictor.windows(last), "leaps").coarse
    assert expected is not None
    rows = frame[frame["cutoff"] == frame["cutoff"].max()]
    np.testing.assert_allclose(rows["LeapTS (coarse)"], expected.reshape(-1))
    assert not np.allclose(rows["LeapTS (coarse)"], rows["LeapTS"])


def test_without_a_scheduling_branch_there_is_no_coarse_forecast_to_compare() -> None:
    model = LeapTS(H, 8, max_steps=2, model={"scheduling": "none"})
    found = compare(model, read_panel(waves()), [Naive()], n_windows=1, season=7)
    assert [score.name for score in found.scores] == ["LeapTS", "Naive"]


def test_polars_in_polars_out() -> None:
    rows = compared(pl.from_pandas(waves())).frame
    assert isinstance(rows, pl.DataFrame)
    assert "SeasonalNaive" in nw.from_native(rows).columns
