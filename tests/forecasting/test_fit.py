"""What a fit takes of the windows there are."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts import LeapTS
from leapts.data.panel import Panel
from leapts.data.windows import Windows
from leapts.errors import DataError
from leapts.forecasting.held_out import _sampled_windows, _stride
from leapts.forecasting.predictor import Predictor
from leapts.report.collect import collect
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, make_forecaster, make_frame


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**4))
def test_windows_are_few_enough_and_of_every_phase_of_the_season(rows: int, most: int, cycles: int) -> None:
    step = _stride(rows, most, cycles)
    assert math.ceil(rows / step) <= most
    assert step == 1 or math.gcd(step, cycles) == 1
    assert (step == 1) == (rows <= most)


@pytest.mark.parametrize(("rows", "step"), [(24, 1), (24 * 24, 25), (23 * 24, 23)])
def test_no_more_windows_are_left_out_than_need_be(rows: int, step: int) -> None:
    assert _stride(rows, 24, 24) == step


@pytest.mark.parametrize("windows_a_series", [1, 5, 11, 12])
def test_every_place_in_a_series_is_looked_at_where_there_are_too_many_series(windows_a_series: int) -> None:
    values = torch.randn(60, 8 + 2 + windows_a_series - 1, generator=torch.Generator().manual_seed(0)).double()
    panel = Panel.from_matrix(values)
    model = LeapTS(2, 8, val_size=0, max_steps=1, model={"hidden_size": 4, "mixing": "none"}).fit(panel)
    # One in as many windows as a series has: by that step, each would be the first of its series.
    some = _sampled_windows(model.predictor_, panel, 60)
    assert isinstance(some.windows, Windows)
    assert len(some) <= 60
    starts = some.windows.starts_of(torch.arange(len(some)) * some.step)
    assert set(starts.tolist()) == set(range(windows_a_series))


def _with_a_late_mover(steps: int, *, jump: float) -> pd.DataFrame:
    """Waves, and a series that is constant until it jumps, so many steps before its end."""
    frame = make_frame()
    late = frame["unique_id"] == "c"
    y = np.zeros(int(late.sum()))
    y[-steps:] = jump * (1 + 0.1 * np.sin(np.arange(steps)))
    frame.loc[late, "y"] = y
    return frame


@pytest.mark.parametrize("kind", [UNIVARIATE, MULTIVARIATE])
def test_a_series_that_was_constant_in_training_has_no_say_in_the_choice_of_weights(kind: dict[str, Any]) -> None:
    """Its errors have no deviation to be counted in, and any unit would do."""
    fits = [
        make_forecaster(val_size=24, max_steps=10, **kind).fit(_with_a_late_mover(20, jump=jump))
        for jump in (1.0, 5000.0)
    ]
    small, large = (fit.report_.validations for fit in fits)
    # The history the others are forecast from is the same, but for what a model that mixes sees of the jump.
    if kind is UNIVARIATE:
        assert small == large
    assert max(error for _, error in large) < 10


def test_a_series_that_was_constant_in_training_does_not_widen_the_intervals_of_others() -> None:
    model = make_forecaster(val_size=24, max_steps=10, **UNIVARIATE).fit(_with_a_late_mover(20, jump=5000.0))
    calibration = model.predictor_.calibration
    assert calibration is not None
    assert len(calibration.windows) == 1
    assert float(calibration.offsets.abs().max()) < 10
    only = make_forecaster(val_size=24, max_steps=10, **UNIVARIATE).fit(
        _with_a_late_mover(20, jump=5000.0).query("unique_id == 'c'")
    )
    assert only.predictor_.calibration is not None
    assert float(only.predictor_.calibration.offsets.abs().max()) > 100


def test_values_out_of_all_proportion_in_the_held_out_part_are_refused_also_where_short_series_are_padded() -> None:
    frame = _with_a_late_mover(20, jump=1e16)
    with pytest.raises(DataError, match=r"series 'c' holds .* standard deviations"):
        make_forecaster(val_size=24, pad_short=True, **UNIVARIATE).fit(frame)


def test_series_too_short_to_hold_a_window_out_are_fitted_without() -> None:
    frame = make_frame({"a": LOOKBACK + 8, "b": LOOKBACK + 8})
    model = make_forecaster(val_size=0, pad_short=True, **UNIVARIATE).fit(frame)
    assert (model.report_.validations, model.predictor_.calibration) == ([], None)


def test_where_only_constant_series_are_looked_at_they_have_their_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of very many series moves, and none of its windows is among those that are looked at."""
    monkeypatch.setattr("leapts.forecasting.held_out._MAX_VALIDATION_ROWS", 1)
    values = torch.zeros(6, 40).double()
    values[-1] = torch.randn(40, generator=torch.Generator().manual_seed(0)).double()
    model = make_forecaster(h=2, input_size=4, val_size=2, max_steps=2, **UNIVARIATE).fit(Panel.from_matrix(values))
    assert all(math.isfinite(error) for _, error in model.report_.validations)


@pytest.mark.parametrize("val_size", [None, 0])
def test_an_update_measures_a_series_that_did_not_move_before(val_size: int | None) -> None:
    """By no deviation at all its thousands would be the whole loss, and the others would not be learned."""
    frame = _with_a_late_mover(100, jump=5000.0)
    early = frame.groupby("unique_id").head(60)
    model = make_forecaster(val_size=12, **UNIVARIATE).fit(early)
    assert model.predictor_.scaler.constant.tolist() == [False, False, True]
    model.val_size = val_size
    known = model.predictor_.scaler
    model.update(frame, max_steps=20)
    scaler = model.predictor_.scaler
    assert not scaler.constant.any()
    assert float(scaler.std[2]) > 1000
    assert torch.equal(scaler.std[:2], known.std[:2])
    assert torch.equal(scaler.mean[:2], known.mean[:2])
    # Sums of losses before and after say nothing of each other, but without a measure they are in the thousands.
    assert max(loss for _, loss in model.report_.losses) < 10
    widths = model.predict(level=[80]).groupby("unique_id").last().eval("`LeapTS-hi-80` - `LeapTS-lo-80`")
    assert 10 < widths["c"] < 50_000


@pytest.mark.parametrize("val_size", [12, 60])  # corrections of all series together, and of each one
def test_a_series_that_moves_for_the_first_time_is_forecast_like_an_unseen_series(val_size: int) -> None:
    frame = _with_a_late_mover(30, jump=5000.0)
    early = frame[frame.groupby("unique_id").cumcount(ascending=False) >= 30]
    model = make_forecaster(val_size=val_size, max_steps=10, **UNIVARIATE).fit(early)
    assert model.predictor_.constant_at_fit.tolist() == [False, False, True]
    known = model.predict(frame, level=[80])
    strange = model.predict(frame.replace({"unique_id": {"c": "new"}}), level=[80])
    assert known.drop(columns="unique_id").equals(strange.drop(columns="unique_id"))
    names = ["a", "b", "c"]
    histories = [frame.loc[frame["unique_id"] == name, "y"].to_numpy() for name in names]
    served = model.predictor_.predict(model.predictor_.windows_from_arrays(names, histories))
    for column, values in served.columns([80]).items():
        np.testing.assert_allclose(values.reshape(-1), known[column], rtol=1e-6)
    # As long as it stays where it was, nothing changes.
    still = model.predict(early, level=[80])
    pd.testing.assert_frame_equal(still, model.predict(level=[80]))


def test_a_model_that_mixes_needs_aligned_look_backs_and_no_more() -> None:
    frame = make_frame()
    model = make_forecaster(max_steps=5, **MULTIVARIATE).fit(frame)
    late = frame.drop(frame.index[frame["unique_id"] == "b"][:17])
    pd.testing.assert_frame_equal(model.predict(late), model.predict(frame))
    ends_early = frame.drop(frame.index[frame["unique_id"] == "b"][-1:])
    with pytest.raises(DataError, match="differ in their first timestamp or their length"):
        model.predict(ends_early)
    with pytest.raises(DataError, match="differ in their first timestamp or their length"):
        model.update(late)


def _with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Every other six of twelve steps are missing, and the last is there."""
    place = frame.groupby("unique_id").cumcount(ascending=False)
    return frame[place % 12 < 6]


def test_no_held_out_window_sees_what_came_after_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpolation draws a line to it. By that, forecasts from within a gap look better than any could be."""
    seen: list[torch.Tensor] = []
    original = Predictor.sliding_windows

    def watched(self: Predictor, panel: Panel, *, partial: bool = False) -> object:
        seen.append(panel.values)
        return original(self, panel, partial=partial)

    monkeypatch.setattr(Predictor, "sliding_windows", watched)
    frame = _with_gaps(make_frame({"a": 240}))
    model = make_forecaster(val_size=60, fill="interpolate", max_steps=2, **UNIVARIATE).fit(frame)
    model.update(frame, max_steps=2)
    model.calibrate(frame)
    learned = {len(values): values for values in seen if len(values) not in (60 + LOOKBACK, 234)}
    held_out = [values for values in seen if len(values) in (60 + LOOKBACK, 234)]
    assert len(held_out) == 5  # choosing weights and measuring twice, and measuring anew
    for values in held_out:
        assert (values.unfold(0, 7, 1).std(1) == 0).any()  # the last value before a gap, all through it
    for values in learned.values():
        assert not (values.unfold(0, 7, 1).std(1) == 0).any()


def timestamps_at_a_skipped_hour(hour: str) -> pd.DatetimeIndex:
    """Up to a week from the day when daylight saving skips that hour, 10 March."""
    walls = pd.date_range(f"2024-01-01 {hour}", f"2024-03-16 {hour}")
    return walls.tz_localize("America/New_York", nonexistent="shift_forward")


@pytest.mark.parametrize("hour", ["02:00", "02:30"])
def test_no_timestamp_is_moved_because_the_first_one_was(hour: str, tmp_path: Path) -> None:
    """A look-back or a window that begins where an hour is skipped keeps its hour, also when it has been saved."""
    timestamps = timestamps_at_a_skipped_hour(hour)
    frame = pd.DataFrame({"ds": timestamps, "y": np.sin(np.arange(len(timestamps)))})
    model = make_forecaster(h=7, input_size=7, val_size=0, max_steps=1).fit(frame)
    ahead = model.predict()["ds"]
    assert set(ahead.dt.strftime("%H:%M")) == {hour}
    assert ahead.equals(model.predict(frame)["ds"])
    past = model.cross_validation(frame)
    assert past["ds"].tolist() == timestamps[-7:].tolist()
    assert set(past["cutoff"]) == {timestamps[-8]}
    model.save(tmp_path / "model")
    loaded = LeapTS.load(tmp_path / "model")
    assert loaded.predict().equals(model.predict())
    assert collect(loaded, frame, cutoffs=2).unseen.tolist() == [0]
    assert collect(loaded, frame[:-6], cutoffs=2).unseen.tolist() == [-6]


def test_no_timestamp_is_moved_because_all_before_it_were_missing() -> None:
    timestamps = timestamps_at_a_skipped_hour("02:30")
    values = np.where(timestamps < timestamps[-7], np.nan, np.arange(len(timestamps)))
    frame = pd.DataFrame({"ds": timestamps, "y": values})
    model = make_forecaster(h=2, input_size=4, val_size=0, max_steps=1, fill="ffill").fit(frame)
    assert model.read(frame).timestamps().astype(int).tolist() == [
        timestamp.timestamp() * 10**6 for timestamp in timestamps[-7:]
    ]
    assert set(model.predict()["ds"].dt.strftime("%H:%M")) == {"02:30"}


def test_windows_of_a_back_test_see_the_same_whatever_came_long_before() -> None:
    frame = make_frame({"a": 90, "b": 120})
    model = make_forecaster(val_size=0, max_steps=3, **UNIVARIATE)
    fitted: list[LeapTS] = []
    past = model.cross_validation(frame, n_windows=3, step_size=2, on_fit=fitted.append)
    for cutoff, part in past.groupby("cutoff"):
        known = frame[frame["ds"] <= cutoff].groupby("unique_id").tail(LOOKBACK)
        names = part["unique_id"].unique()
        wanted = fitted[0].predict(known[known["unique_id"].isin(names)])
        np.testing.assert_allclose(part["LeapTS"], wanted["LeapTS"], rtol=1e-6)
        assert part["ds"].tolist() == wanted["ds"].tolist()
