"""A short share of reproducibility, extreme values and training divergence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import DataError, LeapTS
from leapts_qa import extreme_values, reproducibility
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves


def test_the_same_fit_gives_the_same_bits_in_another_process() -> None:
    assert reproducibility.fit_and_tell() == reproducibility.in_own_process(1, 1)[0]


def test_a_series_alone_is_forecast_as_in_a_batch(tmp_path: Path) -> None:
    outcome = reproducibility.run_against("batches", tmp_path, series=6)
    assert not outcome.failures
    assert outcome.cases == 4 * 6


def test_two_threads_forecast_what_one_does() -> None:
    model = forecaster(model={"hidden_size": 64, "mixing": "none"}).fit(waves())
    many = waves(tuple(map(str, range(400))), length=20)
    one = model.predict(many)["LeapTS"]
    torch.set_num_threads(2)
    try:
        two = model.predict(many)["LeapTS"]
    finally:
        torch.set_num_threads(1)
    np.testing.assert_allclose(one, two, atol=reproducibility.TOLERANCE)


def test_extreme_values_give_a_finite_forecast_or_are_refused(tmp_path: Path) -> None:
    outcome = extreme_values.run_values("seed 0", tmp_path, cases=12)
    assert not outcome.failures
    assert outcome.ends["finite forecast"] >= 5
    assert outcome.ends["refused with a reason"] >= 5


@pytest.mark.parametrize("shape", extreme_values._SHAPES)
def test_every_shape_gives_a_finite_forecast_at_an_ordinary_size(shape: str) -> None:
    values = extreme_values._SHAPES[shape](np.random.default_rng(0))
    frame = waves(("a",)).assign(y=np.clip(values, -1e20, 1e20))
    outcome = Outcome()
    extreme_values.judge(shape, lambda: forecaster(max_steps=1).fit(frame).predict(), outcome)
    assert outcome.ends == {"finite forecast": 1}


def test_infinite_forecasts_and_unexpected_errors_are_detected() -> None:
    outcome = Outcome()
    nothing = pd.DataFrame({"unique_id": ["a"], "ds": [1], "LeapTS": [np.nan]})
    extreme_values.judge("one", lambda: nothing, outcome)
    extreme_values.judge("two", lambda: nothing.drop(columns="b"), outcome)
    assert len(outcome.failures) == 2


def test_diverged_training_is_reported_and_keeps_good_weights(tmp_path: Path) -> None:
    outcome = extreme_values.run_divergence("seed 0", tmp_path, cases=6)
    assert not outcome.failures
    assert outcome.ends["divergence reported, last good weights kept"] >= 2


def test_weights_other_than_the_last_good_ones_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = LeapTS._keep

    def spoiled(model: LeapTS, fitted: object) -> None:
        keep(model, fitted)  # type: ignore[arg-type]
        with torch.no_grad():
            model.predictor_.model.head.bias.add_(1)

    monkeypatch.setattr(LeapTS, "_keep", spoiled)
    assert extreme_values.run_divergence("seed 0", tmp_path, cases=6).failures


def test_a_tiny_series_is_scaled_like_any_other() -> None:
    plain, tiny = waves(), waves().assign(y=waves()["y"] * 2.0**-900)
    forecasts = [forecaster().fit(frame).predict()["LeapTS"] for frame in (plain, tiny)]
    assert (forecasts[0] * 2.0**-900 == forecasts[1]).all()


def test_a_value_far_beyond_its_series_is_refused_by_name() -> None:
    frame = waves()
    frame.loc[frame.index[-1], "y"] = 1e25
    with pytest.raises(DataError, match=r"series 'b' holds 1e\+25, which is .* standard deviations"):
        forecaster().fit(waves()).predict(frame)
