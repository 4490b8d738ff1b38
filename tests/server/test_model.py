"""A served model checks requests, forecasts them, and gives each series its own response."""

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch

from leapts.model import ScheduleTrace
from leapts.server import Limits, model
from leapts.server.model import CheckedRequest, ServedModel, leaps_of
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from leapts.server.schemas import ForecastIn
from tests.server.conftest import histories


def test_only_leaps_that_were_taken_are_listed() -> None:
    trace = ScheduleTrace(
        scale_names=("short", "long"),
        start=torch.tensor([[0, 2, 0], [0, 0, 0]]),
        length=torch.tensor([[2, 4, 0], [6, 0, 0]]),
        scale=torch.tensor([[0, 1, 0], [1, 0, 0]]),
        probabilities=torch.tensor([[[0.75, 0.25], [0.5, 0.5], [0, 0]], [[0.25, 0.75], [0, 0], [0, 0]]]),
        control=torch.tensor([[1.0, 2.0, 0], [5.0, 0, 0]]),
        temporal=torch.tensor([[3.0, 4.0, 0], [6.0, 0, 0]]),
        states=None,
        control_change=None,
        temporal_change=None,
    )
    first, second = (leap.model_dump() for leap in leaps_of(trace)[0])
    assert (first["start"], first["end"], second["start"], second["end"]) == (0, 2, 2, 6)
    assert (first["scale"], second["scale"]) == ("short", "long")
    assert first["probabilities"] == {"short": 0.75, "mid": 0.0, "long": 0.25}
    assert (second["control"], second["temporal"]) == (2.0, 4.0)
    (other,) = leaps_of(trace)[1]
    assert (other.start, other.end, other.scale, other.control) == (0, 6, "long", 5.0)


def test_a_description_names_at_most_a_hundred_series() -> None:
    names = tuple(f"s{number}" for number in range(150))
    fitted = SimpleNamespace(
        config=SimpleNamespace(h=6, input_size=12),
        tail=SimpleNamespace(freq="D", timezone=None, series=names),
        is_multivariate=False,
        has_intervals=True,
    )
    model = SimpleNamespace(id_col="i", time_col="t", target_col="v", predictor_=fitted)
    served = ServedModel(name="m", version="1", estimator=cast("Any", model), identity=(1,), row_seconds=1.0)
    found = served.describe()
    assert (found.series, found.series_count, found.levels) == (list(names[:100]), 150, [80, 95])


@pytest.fixture
def asked(frame: pd.DataFrame) -> dict[str, Any]:
    return {"model": "univariate", "series": histories(frame)}


def _decoded(registry: ModelRegistry, request: dict[str, Any], **limits: Any) -> CheckedRequest:
    read = ForecastIn.model_validate_json(json.dumps(request))
    return registry.find(read.model).check(read, Limits(**limits))


def _refused(registry: ModelRegistry, request: dict[str, Any], **limits: Any) -> Problem:
    with pytest.raises(Problem) as error:
        _decoded(registry, request, **limits)
    return error.value


def test_requests_up_to_the_limits_are_accepted(registry: ModelRegistry, asked: dict[str, Any]) -> None:
    assert len(_decoded(registry, asked, series=3, length=160).windows) == 3
    many, long = _refused(registry, asked, series=2), _refused(registry, asked, length=159)
    assert (many.kind.name, many.detail) == ("too-large", "the request has 3 series; the limit is 2")
    assert "--max-series" in many.hint
    assert (long.kind.name, long.detail) == (
        "too-large",
        "the request has a series of 160 values; the limit is 159",
    )
    assert "--max-length" in long.hint


def test_leaps_are_recorded_only_when_requested(
    registry: ModelRegistry, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _decoded(registry, asked).record == "nothing"
    assert _decoded(registry, {**asked, "trace": True}).record == "leaps"
    monkeypatch.setattr(model, "GatedFusion", torch.nn.Identity)
    assert _decoded(registry, asked).record == "nothing"
    refused = _refused(registry, {**asked, "trace": True})
    assert (refused.detail, refused.hint) == ("this model has no scheduling branch", "leave trace out")


def test_levels_and_quantiles_exclude_each_other(registry: ModelRegistry, asked: dict[str, Any]) -> None:
    def columns(**more: Any) -> list[str]:
        request, served = _decoded(registry, {**asked, **more}), registry.find("univariate")
        response = served.respond(request, served.forecast([request])[0])
        return list(response.forecasts[0].values)

    assert columns() == columns(level=[]) == columns(quantiles=[]) == ["LeapTS"]
    assert columns(level=[80]) == ["LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"]
    assert columns(quantiles=[0.1, 0.5]) == ["LeapTS", "LeapTS-lo-80", "LeapTS-median"]
    assert _refused(registry, {**asked, "level": [80], "quantiles": [0.1]}).kind.name == "bad-data"
    assert _refused(registry, {**asked, "level": [], "quantiles": []}).kind.name == "bad-data"


def test_histories_of_one_length_or_several_and_filled_ones_are_read_alike(
    registry: ModelRegistry, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = registry.find("univariate")

    def forecast(series: list[dict[str, Any]]) -> Any:
        return served.forecast([_decoded(registry, {**asked, "series": series})])[0].values

    whole = forecast(asked["series"])
    ragged = [{**one, "values": one["values"][skip:]} for skip, one in enumerate(asked["series"])]
    np.testing.assert_allclose(forecast(ragged), whole, rtol=1e-6)
    np.testing.assert_allclose(forecast(asked["series"][:1]), whole[:1], rtol=1e-6)
    monkeypatch.setattr(served.estimator, "fill", "ffill")
    holes = [{**one, "values": [*one["values"][:-1], None]} for one in asked["series"]]
    filled = [{**one, "values": [*one["values"][:-1], one["values"][-2]]} for one in asked["series"]]
    np.testing.assert_allclose(forecast(holes), forecast(filled), rtol=1e-6)


@pytest.mark.parametrize(("kind", "is_refused"), [("multivariate", True), ("univariate", False)])
def test_series_of_a_multivariate_model_must_end_together(
    registry: ModelRegistry, asked: dict[str, Any], kind: str, is_refused: bool
) -> None:
    asked["model"] = kind
    _decoded(registry, {**asked, "last": "2024-01-01"})
    last = {**asked["series"][2], "last": "2024-01-02"}
    request = {**asked, "series": [*asked["series"][:2], last], "last": "2024-01-01"}
    if is_refused:
        assert "different timestamps" in _refused(registry, request).detail
    else:
        _decoded(registry, request)


def test_every_timestamp_is_checked_before_any_forecast(registry: ModelRegistry, asked: dict[str, Any]) -> None:
    for request in ({**asked, "last": "soon"}, {**asked, "series": [{**asked["series"][0], "last": "soon"}]}):
        assert "'soon'" in _refused(registry, request).detail


def test_a_response_gives_each_series_its_own_row_and_timestamps(
    registry: ModelRegistry, asked: dict[str, Any]
) -> None:
    asked["series"][1]["last"] = "2024-02-01"
    request = _decoded(registry, {**asked, "last": "2024-01-01", "level": [80]})
    served = registry.find("univariate")
    (forecast,) = served.forecast([request])
    forecast.values[:] = torch.arange(18.0).view(3, 6)
    found = served.respond(request, forecast).model_dump(exclude_none=True)
    assert [one["id"] for one in found["forecasts"]] == ["a", "b", "c"]
    assert [one["values"]["LeapTS"] for one in found["forecasts"]] == forecast.values.tolist()
    assert set(found["forecasts"][0]["values"]) == {"LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"}
    assert [one["timestamps"][0][:10] for one in found["forecasts"]] == ["2024-01-02", "2024-02-02", "2024-01-02"]
    assert all("trace" not in one for one in found["forecasts"])
    assert (found["model"], found["h"], found["freq"]) == ("univariate", 6, "D")
    assert found["version"] == served.version
