import numpy as np
import pandas as pd
import pytest

from leapts import ConfigError, DataError, LeapTS
from leapts.report import collect
from leapts.report.collect import measure_errors, measure_schedules
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame


def test_cutoffs_are_one_horizon_apart_up_to_the_end_of_the_data(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=4)
    assert [cutoff.after for cutoff in contents.cutoffs] == [18, 12, 6, 0]
    assert contents.cutoffs[-1].forecast.panel.last()[0] == data["ds"].max()


def test_forecasts_equal_those_of_predict(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=3)
    for cutoff in contents.cutoffs:
        known = data.groupby("unique_id", sort=False).head(200 - cutoff.after)
        expected = model.predict(known)
        names = [str(name) for name in contents.panel.series]
        got = dict(zip(names, cutoff.forecast.values, strict=True))
        for name, rows in expected.groupby("unique_id"):
            np.testing.assert_allclose(got[str(name)], rows["LeapTS"], rtol=1e-5)


def test_actual_values_follow_the_cutoff(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=3, series=["pears"])
    own = data.loc[data["unique_id"] == "pears", "y"].to_numpy()
    oldest, _, newest = contents.cutoffs
    np.testing.assert_array_equal(contents.actual(oldest)[0], own[-12:-6])
    assert (contents.naive(oldest)[0] == own[-13]).all()
    assert contents.actual(newest).shape == (1, 0)


def test_imputation_does_not_use_values_after_the_cutoff() -> None:
    data = make_frame({"a": 160})
    model = make_forecaster(fill="interpolate", **UNIVARIATE).fit(data)
    data.loc[150:155, "y"] = np.nan
    moved = data.copy()
    moved.loc[156:, "y"] += 1000
    first, second = (collect(model, frame, cutoffs=3) for frame in (data, moved))
    for cutoff, same in list(zip(first.cutoffs, second.cutoffs, strict=True))[:-1]:
        np.testing.assert_array_equal(cutoff.forecast.values, same.forecast.values)
        np.testing.assert_array_equal(first.naive(cutoff), second.naive(same))
    # At the end of the data the values after the gap are known, as in `predict`.
    np.testing.assert_array_equal(first.cutoffs[-1].forecast.values[0], model.predict(data)["LeapTS"])


def test_windows_after_the_fit_are_new_and_scored_first(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=12)
    assert (contents.unseen == 24).all()
    errors = measure_errors(contents)
    assert errors is not None
    # Cutoffs 24, 18, 12 and 6 before the end, seven series each.
    assert (errors.kind, errors.windows) == ("new", 4 * 7)


@pytest.mark.parametrize(("cutoffs", "kind"), [(3, "held out"), (30, "held out")])
def test_without_new_windows_held_out_ones_are_scored(
    model: LeapTS, data: pd.DataFrame, cutoffs: int, kind: str
) -> None:
    errors = measure_errors(collect(model, data.groupby("unique_id", sort=False).head(176), cutoffs=cutoffs))
    assert errors is not None
    assert errors.kind == kind
    assert errors.windows == min(3, cutoffs - 1) * 7


def test_an_update_has_its_own_held_out_steps(data: pd.DataFrame) -> None:
    model = LeapTS(h=6, input_size=12, max_steps=2, val_size=30, pad_short=False, training={"batch_size": 8}).fit(data)
    assert collect(model, data).held_out == 30
    short = data.groupby("unique_id", sort=False).head(12 + 6 + 10)
    assert collect(model.update(short, max_steps=1), short).held_out == 10


def test_without_held_out_data_errors_are_of_training_windows(data: pd.DataFrame) -> None:
    blind = make_forecaster(**UNIVARIATE, val_size=0).fit(data)
    contents = collect(blind, data, cutoffs=3)
    errors = measure_errors(contents)
    assert errors is not None
    assert errors.kind == "training"
    assert contents.levels == (50, 80, 95)


def test_errors_by_step_are_means_over_windows(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=5)
    errors = measure_errors(contents)
    assert errors is not None
    by_hand = np.concatenate([contents.absolute_errors(cutoff) for cutoff in contents.cutoffs[:-1]])
    np.testing.assert_allclose(errors.final, by_hand.mean(0))
    inside = []
    for cutoff in contents.cutoffs[:-1]:
        actual, (lower, upper) = contents.actual(cutoff), contents.intervals(cutoff)[80]
        inside.append((lower <= actual) & (actual <= upper))
    np.testing.assert_allclose(errors.coverage[80], np.concatenate(inside).mean(0))
    assert errors.calibration[80] == pytest.approx(np.concatenate(inside).mean())
    shares = list(errors.calibration.values())
    assert shares == sorted(shares)


def test_leaps_of_all_forecasts_are_counted_and_fill_their_horizons(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data, cutoffs=3)
    schedules = measure_schedules(contents)
    assert schedules is not None
    forecasts = 3 * len(contents.panel)
    assert sum(schedules.steps_of.values()) == forecasts * H
    assert sum(schedules.forecasts_with.values()) == forecasts
    assert sum(schedules.leaps_of.values()) == sum(n * count for n, count in schedules.forecasts_with.items())


def test_series_can_be_selected_or_limited(model: LeapTS, data: pd.DataFrame) -> None:
    assert collect(model, data, max_series=2).left_out == 5
    assert collect(model, data, series=["plums"]).panel.series == ("plums",)
    with pytest.raises(DataError, match="did you mean 'plums'"):
        collect(model, data, series=["plum"])
    with pytest.raises(ConfigError, match="series="):
        collect(model, data, series=[])


def test_a_multivariate_model_can_show_a_part_of_its_series() -> None:
    frame = make_frame({"a": 160, "b": 160, "c": 160})
    multivariate = make_forecaster(**MULTIVARIATE).fit(frame)
    some = collect(multivariate, frame, series=["c"], cutoffs=2)
    every = collect(multivariate, frame, cutoffs=2)
    for few, all_of_them in zip(some.cutoffs, every.cutoffs, strict=True):
        np.testing.assert_array_equal(few.forecast.values[0], all_of_them.forecast.values[2])


def test_short_series_are_in_later_cutoffs_only() -> None:
    frame = make_frame({"long": 160, "brief": 20})
    model = make_forecaster(**UNIVARIATE, pad_short=False, val_size=0).fit(frame)
    contents = collect(model, frame, cutoffs=3)
    names = [[contents.panel.series[row] for row in cutoff.rows] for cutoff in contents.cutoffs]
    assert names == [["long"], ["brief", "long"], ["brief", "long"]]


def test_zero_cutoffs_are_refused(model: LeapTS, data: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="cutoffs=0"):
        collect(model, data, cutoffs=0)


def test_data_before_the_end_of_the_fit_are_training_windows(model: LeapTS, data: pd.DataFrame) -> None:
    contents = collect(model, data.groupby("unique_id", sort=False).head(136), cutoffs=4)
    assert (contents.unseen == -40).all()
    assert {contents.kind_of(0, cutoff.after) for cutoff in contents.cutoffs} == {"training"}


def test_a_series_selected_twice_is_shown_once(model: LeapTS, data: pd.DataFrame) -> None:
    assert collect(model, data, cutoffs=1, series=["pears", "pears"]).panel.series == ("pears",)


def test_the_old_name_of_max_series_works_and_warns(model: LeapTS, data: pd.DataFrame) -> None:
    with pytest.warns(DeprecationWarning, match="max_series"):
        assert len(collect(model, data, cutoffs=1, most_series=2).panel) == 2
