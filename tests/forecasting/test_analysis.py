import numpy as np
import pytest

from leapts import ConfigError, DataError, LeapTS
from leapts.data.panel import Panel
from leapts.forecasting.analysis import (
    TracedWindows,
    Volatility,
    by_volatility,
    embed,
    overall,
    representations,
    trace_windows,
)
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

FRAME = make_frame({"calm": 90, "b": 90, "c": 90})


@pytest.fixture(scope="module", params=[UNIVARIATE, MULTIVARIATE], ids=["univariate", "multivariate"])
def model(request: pytest.FixtureRequest) -> LeapTS:
    return make_forecaster(**request.param).fit(FRAME)


def test_every_window_of_every_series_is_traced(model: LeapTS) -> None:
    traced = trace_windows(model, FRAME)
    windows = 90 - LOOKBACK - H + 1
    assert np.bincount(traced.series).tolist() == [windows] * 3
    assert traced.names == model.predictor_.tail.series
    np.testing.assert_array_equal(traced.scales.sum(1), traced.leaps)
    assert ((traced.control > 0) & (traced.control < 1)).all()


def test_a_traced_window_is_what_predict_shows(model: LeapTS) -> None:
    """The last window's look-back ends a horizon before the data do."""
    traced = trace_windows(model, FRAME)
    known = FRAME.groupby("unique_id", sort=False).head(90 - H)
    _, trace = model.predict(known, return_trace=True)
    for row, name in enumerate(traced.names):
        leaps = trace[trace["unique_id"] == name]
        last = np.flatnonzero(traced.series == row)[-1]
        assert traced.leaps[last] == len(leaps)
        share = (leaps["control"] / (leaps["control"] + leaps["temporal"])).mean()
        assert traced.control[last] == pytest.approx(share, rel=1e-3)


def test_fewer_windows_are_spread_over_the_data(model: LeapTS) -> None:
    traced = trace_windows(model, FRAME, max_rows=30)
    assert len(traced.volatility) == 30


def _made_up(volatility: list[float]) -> TracedWindows:
    count = len(volatility)
    leaps = np.arange(1, count + 1)
    return TracedWindows(
        series=np.zeros(count, dtype=np.int64),
        names=("a",),
        volatility=np.array(volatility),
        control=np.linspace(0.1, 0.9, count),
        leaps=leaps,
        scales=np.stack([leaps - 1, np.ones_like(leaps), np.zeros_like(leaps)], axis=1),
        states=np.zeros((count, 2)),
    )


def test_bins_are_of_one_size_and_rise_in_volatility() -> None:
    made = _made_up([5.0, 1.0, 3.0, 2.0, 8.0, 7.0, 6.0, 4.0])
    bins = by_volatility(made)
    assert [(one.windows, one.low, one.high) for one in bins] == [(2, 1, 2), (2, 3, 4), (2, 5, 6), (2, 7, 8)]
    # The two calmest windows are the second and fourth: 2 and 4 leaps, of which 1 and 1 are mid.
    assert bins[0].leaps == 3
    assert bins[0].scales == pytest.approx({"short": 4 / 6, "mid": 2 / 6, "long": 0})
    assert bins[0].control == pytest.approx(made.control[[1, 3]].mean())
    whole = overall(made)
    assert whole.control == pytest.approx(np.mean([one.control for one in bins]))
    assert whole.temporal == pytest.approx(1 - whole.control)


def test_more_bins_than_windows_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 windows cannot be put into 3 bins"):
        by_volatility(_made_up([1.0, 2.0]), 3)


@pytest.mark.parametrize("kind", ["changes", "level"])
def test_volatility_is_a_deviation_in_units_of_the_series(model: LeapTS, kind: Volatility) -> None:
    panel: Panel = model.read(FRAME)
    traced = trace_windows(model, FRAME, volatility=kind)
    row = list(traced.names).index("calm")
    first = np.flatnonzero(traced.series == row)[0]
    values = panel.select(["calm"]).values[:LOOKBACK].numpy()
    deviation = float(model.predictor_.scaler.std[row])
    expected = np.diff(values).std() if kind == "changes" else values.std()
    assert traced.volatility[first] == pytest.approx(expected / deviation, rel=1e-4)


@pytest.mark.parametrize("kind", ["changes", "level"])
def test_a_look_back_of_one_step_does_not_vary(kind: Volatility) -> None:
    traced = trace_windows(make_forecaster(input_size=1, max_steps=1).fit(FRAME), FRAME, volatility=kind)
    assert (traced.volatility == 0).all()


def test_a_model_without_leaps_has_nothing_to_trace_but_vectors_to_embed() -> None:
    plain = make_forecaster(model={"scheduling": {"kind": "none"}, "mixing": {"kind": "none"}, "hidden_size": 16}).fit(
        FRAME
    )
    with pytest.raises(ConfigError, match="no scheduling branch"):
        trace_windows(plain, FRAME)
    vectors, names = representations(plain, FRAME)
    assert vectors.shape == (len(names), 16)
    assert set(names) == {"calm", "b", "c"}


def test_states_belong_to_the_series_they_are_said_to(model: LeapTS) -> None:
    vectors, names = representations(model, FRAME)
    traced = trace_windows(model, FRAME, max_rows=2000)
    np.testing.assert_array_equal(vectors, traced.states)
    assert names == tuple(str(traced.names[row]) for row in traced.series)


def test_groups_apart_score_high_and_mixed_groups_low() -> None:
    rng = np.random.default_rng(0)
    groups = ["left", "right"] * 40
    univariate = rng.normal(size=(80, 5)) + 20 * (np.array(groups) == "left")[:, None]
    assert embed(univariate, groups).separation > 0.7
    mixed = embed(rng.normal(size=(80, 5)), groups)
    assert mixed.separation < 0.1
    assert mixed.points.shape == (80, 2)


@pytest.mark.parametrize("groups", [["a"] * 6, list("abcdef")])
def test_groups_without_a_separation_are_refused(groups: list[str]) -> None:
    with pytest.raises(DataError, match="have no separation"):
        embed(np.zeros((6, 2)), groups)
