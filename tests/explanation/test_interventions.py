"""An intervention changes one decision and replays the others; nothing to do changes nothing."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapts import LeapTS
from leapts.errors import ConfigError, DataError
from leapts.explanation.forced import ForcedNetwork, recorded_decisions
from tests.explanation.conftest import LEAPING

H = 6


@pytest.mark.parametrize("kind", LEAPING)
def test_nothing_to_do_changes_nothing(kind: str, models: dict[str, LeapTS]) -> None:
    pd.testing.assert_frame_equal(models[kind].predict(do={}), models[kind].predict())


@pytest.mark.parametrize("kind", LEAPING)
def test_a_replayed_schedule_gives_the_same_forecast(kind: str, models: dict[str, LeapTS]) -> None:
    predictor = models[kind].predictor_
    windows = predictor.windows(predictor.tail)
    plain = predictor.predict(windows, "leaps")
    assert plain.trace is not None
    replayed = ForcedNetwork(predictor.model, recorded_decisions).forecast(windows.batch.history, record="leaps")
    found = (
        windows.scaler.mean[:, None, None]
        + replayed.values.flatten(0, 1).unflatten(1, (H, -1)) * windows.scaler.std[:, None, None]
    )
    np.testing.assert_allclose(found, plain.quantiles, rtol=1e-5)
    assert replayed.trace is not None
    assert (replayed.trace.length.flatten(0, 1) == plain.trace.length).all()


@pytest.mark.parametrize("kind", ["univariate", "multivariate", "no linear path", "pretrained"])
@pytest.mark.parametrize("scale", ["short", "mid", "long"])
def test_a_forced_scale_is_taken_by_every_leap(kind: str, scale: str, models: dict[str, LeapTS]) -> None:
    forecast, trace = models[kind].predict(do={"scale": scale}, return_trace=True)
    assert (trace["scale"] == scale).all()
    assert trace.groupby("unique_id")["length"].sum().eq(H).all()
    assert np.isfinite(forecast["LeapTS"]).all()


@pytest.mark.parametrize("kind", LEAPING)
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_a_forced_schedule_is_followed_as_far_as_it_fits(
    kind: str, lengths: list[int], models: dict[str, LeapTS]
) -> None:
    _, trace = models[kind].predict(do={"schedule": lengths}, return_trace=True)
    for _, leaps in trace.groupby("unique_id"):
        wanted = [
            min(length, H - sum(lengths[:place])) for place, length in enumerate(lengths) if sum(lengths[:place]) < H
        ]
        taken = leaps["length"].tolist()
        last = -1 if len(taken) == len(wanted) else None  # the last leap allowed takes all steps
        assert taken[: len(wanted)][:last] == wanted[:last]
        assert sum(taken) == H


def test_one_leap_of_one_series_is_changed(models: dict[str, LeapTS]) -> None:
    model = models["no linear path"]
    plain, before = model.predict(return_trace=True)
    forecast, trace = model.predict(do={"length": {0: 1}, "series": ["b"]}, return_trace=True)
    is_b = plain["unique_id"] == "b"
    pd.testing.assert_frame_equal(forecast[~is_b], plain[~is_b])
    assert not np.allclose(forecast[is_b]["LeapTS"], plain[is_b]["LeapTS"], rtol=1e-6)
    for name in "ac":
        assert (
            trace[trace["unique_id"] == name]["length"].tolist()
            == before[before["unique_id"] == name]["length"].tolist()
        )
    assert trace[trace["unique_id"] == "b"]["length"].iloc[0] == 1


@pytest.mark.parametrize("kind", ["univariate", "multivariate", "one scale", "pretrained"])
def test_gates_weigh_the_parts_of_the_ledger(kind: str, models: dict[str, LeapTS]) -> None:
    model = models[kind]
    explanation = model.explain()
    closed = model.predict(do={"gate": 0})["LeapTS"].to_numpy().reshape(3, H)
    leaps = [name for name in explanation.ledger.names if name.startswith("leap ")]
    np.testing.assert_allclose(closed, explanation.values - sum(explanation.part(name) for name in leaps), rtol=1e-5)
    one = model.predict(do={"gate": {0: 0.0}})["LeapTS"].to_numpy().reshape(3, H)
    np.testing.assert_allclose(one, explanation.values - explanation.part("leap 0"), rtol=1e-5)


def test_intervals_and_paths_follow_an_intervention(models: dict[str, LeapTS]) -> None:
    found = models["univariate"].predict(do={"gate": 1}, level=[80], n_samples=3)
    plain = models["univariate"].predict(level=[80], n_samples=3)
    assert list(found.columns) == list(plain.columns)
    assert (found["LeapTS-lo-80"] <= found["LeapTS-hi-80"]).all()
    assert not np.allclose(found["LeapTS-hi-80"], plain["LeapTS-hi-80"])


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ({"promo": 0}, "promo"),
        ({"scale": "huge"}, "huge"),
        ({"length": 0}, "length 0"),
        ({"length": {9: 2}}, "leap 9"),
        ({"gate": 2}, "between 0 and 1"),
        ({"gate": {-2: 0}}, "from 0"),
        ({"schedule": [2, 4], "length": 3}, "schedule"),
        ({"schedule": [("short", 1.5)]}, "1.5"),
        ({"scale": {"a": "long"}}, "from 0"),
    ],
)
def test_an_impossible_intervention_is_refused(do: dict[str, Any], said: str, models: dict[str, LeapTS]) -> None:
    with pytest.raises(ConfigError, match=said):
        models["univariate"].predict(do=do)


def test_a_model_or_a_series_that_is_not_there_is_refused(models: dict[str, LeapTS]) -> None:
    with pytest.raises(ConfigError, match="no scheduling branch"):
        models["no leaps"].predict(do={"gate": 0})
    with pytest.raises(DataError, match="zebra"):
        models["univariate"].predict(do={"gate": 0, "series": ["zebra"]})
