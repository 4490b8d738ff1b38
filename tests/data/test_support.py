"""Support: found in the data or given, and never left."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.data.panel import Panel
from leapts.data.scaling import Support
from leapts.errors import ConfigError, DataError
from leapts.forecasting.intervals import interval_bounds
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, H, make_forecaster


def panel_of(*series: list[float]) -> Panel:
    """A panel of aligned series."""
    return Panel.from_matrix(torch.tensor(series, dtype=torch.float64))


def limits(support: Support) -> list[tuple[float, float, bool]]:
    return list(zip(support.lower.tolist(), support.upper.tolist(), support.whole.tolist(), strict=True))


REAL, POSITIVE, COUNT = (-torch.inf, torch.inf, False), (0.0, torch.inf, False), (0.0, torch.inf, True)


def test_the_support_of_each_series_is_found() -> None:
    found = Support.of(
        panel_of(
            [0.5, -0.1, 3.0],
            [0.5, 0.0, 3.0],
            [3.0, 0.0, 5.0],
            [0.2, 1.0, 1.0],
            [99.5, 100.0, 2.0],
            [0.5, 0.9, 0.1],  # never 1: a share may be more
            [1.0, 1.0, 1.0],  # constant
            [-3.0, 2.0, 5.0],  # whole numbers, not counts
        )
    )
    assert limits(found) == [REAL, POSITIVE, COUNT, (0, 1, False), (0, 100, False), POSITIVE, COUNT, REAL]


def test_a_limit_is_reached_by_one_value_in_a_hundred() -> None:
    often, once = [0.5] * 99 + [1.0], [0.5] * 100 + [1.0]
    assert limits(Support.of(panel_of(often))) == [(0, 1, False)]
    assert limits(Support.of(panel_of(once))) == [POSITIVE]


@pytest.mark.parametrize(
    ("given_support", "expected"),
    [("real", REAL), ("positive", POSITIVE), ("count", COUNT), ((-2.0, 7.5), (-2.0, 7.5, False))],
)
def test_a_given_support_is_that_of_every_series(given_support: Any, expected: tuple[float, float, bool]) -> None:
    found = Support.of(panel_of([0.0, 3.0], [1.0, 2.0]), given_support)
    assert limits(found) == [expected] * 2
    assert found.is_real == (given_support == "real")


@pytest.mark.parametrize("given_support", ["positive", "count", (-0.05, 7.5), (-2.0, 1.5)])
def test_data_outside_of_a_given_support_are_refused_by_name(given_support: Any) -> None:
    with pytest.raises(DataError, match=r"series '1' holds (-0\.1|2), outside of support="):
        Support.of(panel_of([0.0, 1.0], [-0.1, 2.0]), given_support)


VALUES = st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4)


@given(VALUES, VALUES, VALUES)
def test_clipped_values_are_in_the_support_and_those_inside_stay(
    one: list[float], two: list[float], three: Any
) -> None:
    support = Support.joined([Support.of(panel_of([0.0, 1.0]), kind) for kind in ("positive", "count", (-1.0, 1.0))])
    values = torch.tensor([one, two, three], dtype=torch.float64)
    clipped = support.clip(values.unsqueeze(-1)).squeeze(-1)
    assert (clipped[:2] >= 0).all()
    assert torch.equal(clipped[1], clipped[1].round())
    assert (clipped[2].abs() <= 1).all()
    assert torch.equal(support.clip(clipped), clipped)
    inside = values[0] >= 0
    assert torch.equal(clipped[0][inside], values[0][inside])
    # Order is kept, so quantiles do not cross.
    rising = values.sort(dim=1).values
    assert (support.clip(rising).diff(dim=1) >= 0).all()


def test_limits_that_were_left_are_dropped_one_by_one() -> None:
    support = Support.joined(
        [Support.of(panel_of([0.0, 1.0]), kind) for kind in ("count", "count", (0.0, 1.0), "count")]
    )
    seen = panel_of([-1.0, 2.0], [0.5, 2.0], [0.5, 1.5], [3.0, 2.0])
    expected = [(-torch.inf, torch.inf, True), POSITIVE, POSITIVE, COUNT]
    assert limits(support.widened(seen)) == expected


# Forecasts


def demand(names: str = "abc", *, length: int = 160, seed: int = 0, shift: float = 0.0) -> pd.DataFrame:
    """Intermittent demand: mostly zeros."""
    rng = np.random.default_rng(seed)
    frames = []
    for name in names:
        y = (rng.random(length) < 0.3) * rng.poisson(4, length) + shift
        frames.append(pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=length), "y": y}))
    return pd.concat(frames, ignore_index=True)


LEVELS = [50, 80, 95, 99.9]
COLUMNS = ["LeapTS", *(bound.column for bound in interval_bounds(LEVELS))]


@pytest.mark.parametrize("kind", [UNIVARIATE, MULTIVARIATE])
@pytest.mark.parametrize("options", [{}, {"loss": "huber"}, {"support": "positive"}, {"support": (0.0, 12.0)}])
def test_no_forecast_leaves_the_support(kind: dict[str, Any], options: dict[str, Any]) -> None:
    model = make_forecaster(val_size=24, max_steps=5, **kind, **options).fit(demand())
    forecast = model.predict(level=LEVELS, n_samples=50)
    values = forecast.drop(columns=["unique_id", "ds"]).to_numpy()
    assert values.min() >= 0
    if "support" not in options:
        np.testing.assert_array_equal(values, np.rint(values))
    if options.get("support") == (0.0, 12.0):
        assert values.max() == 12  # the 99.9 % interval reaches it


def test_with_real_support_a_forecast_may_be_negative() -> None:
    forecast = make_forecaster(val_size=24, support="real", **UNIVARIATE).fit(demand()).predict(level=[95])
    assert (forecast["LeapTS-lo-95"] < 0).any()


def test_intermittent_demand_has_zeros_among_its_quantiles() -> None:
    found = make_forecaster(val_size=40, max_steps=100, **UNIVARIATE).cross_validation(demand(), 6, level=[80])
    assert (found["LeapTS-lo-80"] == 0).all()
    assert (found["LeapTS"] <= 1).mean() > 0.8  # seven in ten values are zero
    assert (found["y"] > found["LeapTS-hi-80"]).mean() < 0.2
    assert found["LeapTS-hi-80"].median() < 12


def test_an_unseen_series_has_limits_if_all_fitted_series_have() -> None:
    model = make_forecaster(val_size=24, **UNIVARIATE).fit(demand())
    unseen = demand("x", seed=5)
    assert (model.predict(unseen, level=LEVELS)[COLUMNS] >= 0).all(axis=None)
    mixed = pd.concat([demand("ab"), demand("c", shift=-2.5)])
    free = make_forecaster(val_size=24, **UNIVARIATE).fit(mixed).predict(unseen, level=LEVELS)
    assert (free[COLUMNS] < 0).any(axis=None)


def test_a_fitted_series_that_left_its_limits_has_none() -> None:
    model = make_forecaster(val_size=24, **UNIVARIATE).fit(demand())
    moved = demand("abc", shift=-50.0)
    forecast = model.predict(moved, level=[95])
    assert (forecast["LeapTS"] < 0).all()
    # Those that kept theirs keep them.
    partly = pd.concat([demand("ab"), moved.query("unique_id == 'c'")])
    found = model.predict(partly, level=[95]).groupby("unique_id")["LeapTS-lo-95"].min()
    assert found["a"] >= 0
    assert found["b"] >= 0
    assert found["c"] < 0


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"support=\(1\.0, 0\.0\): the first limit must be below the second"):
        make_forecaster(support=(1.0, 0.0)).fit(demand())
    with pytest.raises(ConfigError, match="support"):
        make_forecaster(support="negative").fit(demand())


def test_the_support_survives_a_folder(tmp_path: Any) -> None:
    model = make_forecaster(val_size=24, support=(0.0, 12.0), **UNIVARIATE).fit(demand())
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert loaded.fit_config().support == (0.0, 12.0)
    pd.testing.assert_frame_equal(loaded.predict(level=[80], n_samples=5), model.predict(level=[80], n_samples=5))
    assert len(loaded.predict()) == 3 * H


def test_the_automatic_options_say_which_support_was_found() -> None:
    assert Support.of(panel_of([-1.0, 2.5])).summary() == ("real", "0 of 1 series never negative")
    assert Support.of(panel_of([1.0, 2.0])).summary() == (
        "count",
        "1 of 1 series never negative, 1 with whole numbers only",
    )
    mixed = panel_of([-1.0, 2.5], [0.5, 1.5], [0.5, 1.0])
    assert Support.of(mixed).summary() == ("mixed", "2 of 3 series never negative, 1 with an upper limit")
    model = make_forecaster(max_steps=1, **UNIVARIATE).fit(demand())
    chosen = {one.option: (one.value, one.reason) for one in model.auto_config_}
    assert chosen["support"] == ("count", "3 of 3 series never negative, 3 with whole numbers only")
    given_support = make_forecaster(max_steps=1, support="real", **UNIVARIATE).fit(demand())
    assert "support" not in {one.option for one in given_support.auto_config_}
