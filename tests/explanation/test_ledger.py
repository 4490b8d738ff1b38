"""The parts of every forecast add up to it, and their sensitivities are those that finite differences find."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.errors import ConfigError, DataError
from leapts.explanation.compute import differentiable
from leapts.explanation.forced import recorded_decisions
from leapts.explanation.ledger import Explanation
from leapts.explanation.simple import combined_with
from leapts.explanation.uncertainty import errors_by_scale
from tests.explanation.conftest import KINDS, LEAPING
from tests.forecasting.frames import make_forecaster, make_frame


@pytest.mark.parametrize("kind", [*KINDS, "pretrained"])
def test_parts_add_up_to_the_forecast(kind: str, models: dict[str, LeapTS]) -> None:
    explanation = models[kind].explain()
    frame = explanation.to_frame()
    parts = frame[list(explanation.ledger.names)].sum(axis=1)
    np.testing.assert_allclose(parts, models[kind].predict()["LeapTS"], rtol=0, atol=1e-5 * frame["LeapTS"].abs().max())
    assert explanation.check()
    assert explanation.error() < 1e-6


def test_a_sum_that_is_wrong_is_found(models: dict[str, LeapTS]) -> None:
    explanation = models["univariate"].explain()
    explanation.ledger.parts[0, 1, 2] += 0.01
    assert not explanation.check()


@pytest.mark.parametrize("kind", LEAPING)
def test_a_leap_writes_its_own_steps(kind: str, models: dict[str, LeapTS]) -> None:
    explanation = models[kind].explain()
    leaps, h = explanation.leaps(), explanation.values.shape[1]
    assert leaps.groupby("unique_id")["length"].sum().eq(h).all()
    assert leaps["share"].groupby(leaps["unique_id"]).sum().to_numpy() == pytest.approx(1)
    for place, name in enumerate(explanation.panel.series):
        for leap in leaps[leaps["unique_id"] == name].itertuples():
            part = explanation.part(f"leap {leap.leap}")[place]
            assert float(part.sum()) == pytest.approx(leap.total)
            assert float(part[: leap.start].abs().sum()) == 0
    with_none = set(explanation.ledger.names) - {f"leap {number}" for number in range(h)}
    assert {"level", "coarse forecast"} <= with_none


@pytest.mark.parametrize("kind", [*KINDS, "pretrained"])
def test_sensitivities_equal_finite_differences(kind: str, models: dict[str, LeapTS]) -> None:
    predictor = models[kind].predictor_
    explanation = models[kind].explain()
    windows = predictor.windows(predictor.tail)
    trace = predictor.predict(windows, "leaps").trace
    decisions = None if trace is None else recorded_decisions(trace)
    history, step = windows.batch.history, 1e-2
    names = [name for name in explanation.ledger.names if name not in ("mean above median", "limits", "rounding")]
    found = explanation.ledger.rearranged(names, explanation.history.shape[1]).sensitivity
    if "simple forecasts" in names:  # a part of the linear path
        both = [names.index("linear path"), names.index("simple forecasts")]
        found[:, both[0]] += found[:, both[1]]
        found = found[:, [place for place in range(len(names)) if place != both[1]]]
    wrong = 0
    for back in range(1, 9):
        totals = []
        for sign in (1, -1):
            moved = history.clone()
            moved[0, 0, -back] += sign * step
            sums = differentiable(predictor.model, moved, decisions)[0].detach()
            parts = sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1]))
            totals.append(parts[0].sum(1))
        slope = (totals[0] - totals[1]) / (2 * step)
        if "linear path" not in names:
            slope = torch.cat([slope[:1], slope[2:]])
        wrong += int((slope - found[0, :, -back]).abs().max() > 2e-2 * max(1.0, float(found[0].abs().max())))
    assert wrong <= 1  # a step across a kink of the activation, or of what the context of a pretrained model counts


def test_series_that_are_mixed_depend_on_each_other(models: dict[str, LeapTS]) -> None:
    mixed, alone = models["multivariate"].explain(), models["univariate"].explain()
    assert alone.across is None
    assert mixed.across is not None
    own = mixed.ledger.sensitivity.sum((1, 2))
    torch.testing.assert_close(mixed.across.diagonal(), own, rtol=1e-4, atol=1e-4)
    assert float((mixed.across - torch.diag(own)).abs().max()) > 0


def test_the_ledger_of_a_mean_is_the_mean_of_ledgers(models: dict[str, LeapTS]) -> None:
    members = [models[kind].explain() for kind in ("univariate", "no linear path", "no leaps")]
    mean = Explanation.mean(members)
    forecasts = [models[kind].predict()["LeapTS"] for kind in ("univariate", "no linear path", "no leaps")]
    np.testing.assert_allclose(mean.to_frame()["LeapTS"], sum(forecasts) / 3)
    assert mean.check()
    for name in mean.ledger.names:
        np.testing.assert_allclose(mean.part(name), sum(member.part(name) for member in members) / 3)
    with pytest.raises(ConfigError, match="same series"):
        Explanation.mean([members[0], LeapTS.pretrained(h=3).explain(make_frame())])


def test_a_combination_shows_its_simple_forecast() -> None:
    week = np.tile([1.0, 5, 2, 8, 3, 9, 4], 40)
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024", periods=280), "y": week})
    frame["y"] += np.random.default_rng(0).normal(size=280) + 20
    model = make_forecaster(input_size=28, max_steps=2, learning_rate=0.02).fit(frame)
    weights = combined_with(model.predictor_)
    explanation = model.explain()
    assert explanation.check()
    if not weights:  # it depends on the data whether a combination is better
        assert "simple forecasts" not in explanation.ledger.names
        return
    assert set(weights) <= {"naive", "historic mean", "seasonal naive (7)", "seasonal mean (7)", "drift"}
    assert "simple forecasts" in explanation.ledger.names


def test_an_explanation_is_told_in_words_frames_and_json(models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    hostile = data.replace({"unique_id": {"a": "<b>&"}})
    explanation = models["univariate"].explain(hostile)
    text = explanation.summary("b")
    assert text.startswith("b: ")
    assert text.index("gate") < text.index("level of the window")
    assert str(explanation).count("\n") == 2
    assert "<b>" not in explanation._repr_html_()
    assert "&lt;b&gt;&amp;" in explanation._repr_html_()
    told = json.loads(explanation.to_json())
    assert [one["series"] for one in told] == list(explanation.panel.series)
    total = np.sum(list(told[0]["parts"].values()), axis=0)
    np.testing.assert_allclose(total, told[0]["forecast"], rtol=1e-5)
    assert {"entropy", "width_80", "total", "control_share"} <= set(told[0]["leaps"][0])
    segments = explanation.sensitivities(segments=3)
    assert len(segments) == 3 * len(explanation.ledger.names) * 3
    assert segments["sensitivity"].sum() == pytest.approx(float(explanation.ledger.sensitivity.sum()), rel=1e-4)
    with pytest.raises(DataError, match="zebra"):
        explanation.summary("zebra")


def test_errors_are_measured_for_each_scale(models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    model = models["univariate"]
    errors = errors_by_scale(model.predictor_, model.read(data))
    assert set(errors) <= {"short", "mid", "long"}
    windows = 3 * (160 - 12 - 6 + 1)
    assert sum(number for _, number in errors.values()) == 6 * windows
    assert all(error > 0 for error, _ in errors.values())
    with pytest.raises(ConfigError, match="no scheduling branch"):
        errors_by_scale(models["no leaps"].predictor_, model.read(data))
