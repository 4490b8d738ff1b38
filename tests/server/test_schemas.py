"""What is taken from the wire, up to its very limits, and what is put on it."""

import json
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pandas as pd
import pytest
import torch

from leapts.forecasting.arrays import ArrayForecast
from leapts.model import ScheduleTrace
from leapts.server import Limits
from leapts.server import schemas as wire
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry, Served
from leapts.server.schemas import ForecastIn, _leaps, answer, decode, described, schemas
from tests.server.conftest import histories

ONE = {"id": "a", "values": [1.0]}
LARGEST = 2**53


def _read(**request: Any) -> ForecastIn:
    return msgspec.json.decode(json.dumps({"series": [ONE], **request}), type=ForecastIn)


@pytest.mark.parametrize(
    "request_",
    [
        {"series": [{**ONE, "id": "x" * 1000}]},
        {"series": [{**ONE, "id": LARGEST}, {**ONE, "id": -LARGEST}]},
        {"series": [{**ONE, "last": "x" * 64}], "last": "x" * 64},
        {"series": [{**ONE, "last": LARGEST}], "last": -LARGEST},
        {"level": [0.5, 99.5]},
        {"level": [50.0] * 20},
        {"quantiles": [0.01, 0.99]},
        {"quantiles": [0.5] * 20},
    ],
)
def test_what_is_just_within_the_limits_is_taken(request_: dict[str, Any]) -> None:
    found = msgspec.to_builtins(_read(**request_))
    assert {name: found[name] for name in request_ if name != "series"} == {
        name: value for name, value in request_.items() if name != "series"
    }


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"series": []}, r"\$\.series"),
        ({"series": [{"id": "a", "values": []}]}, "values"),
        ({"series": [{**ONE, "id": "x" * 1001}]}, "id"),
        ({"series": [{**ONE, "id": LARGEST + 1}]}, "id"),
        ({"series": [{**ONE, "id": -LARGEST - 1}]}, "id"),
        ({"series": [{**ONE, "last": "x" * 65}]}, "last"),
        ({"last": LARGEST + 1}, "last"),
        ({"last": -LARGEST - 1}, "last"),
        ({"level": [0]}, "level"),
        ({"level": [100]}, "level"),
        ({"level": [50.0] * 21}, "level"),
        ({"quantiles": [0]}, "quantiles"),
        ({"quantiles": [1]}, "quantiles"),
        ({"quantiles": [0.5] * 21}, "quantiles"),
        ({"other": 1}, "other"),
    ],
)
def test_what_is_just_beyond_is_not(request_: dict[str, Any], place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=place):
        _read(**request_)


def test_what_is_left_out_is_not_asked_for() -> None:
    read = _read()
    assert (read.model, read.last, read.level, read.quantiles, read.trace) == (None, None, None, None, False)
    assert (read.series[0].last, read.series[0].values) == (None, [1.0])


def test_the_schemas_name_the_servers_own_limits() -> None:
    found = schemas(Limits(series=7, length=9))
    assert found["ForecastIn"]["properties"]["series"]["maxItems"] == 7
    assert found["SeriesIn"]["properties"]["values"]["maxItems"] == 9
    assert {"ForecastOut", "SeriesOut", "LeapOut", "ModelsOut", "ModelOut"} <= set(found)
    assert found["ForecastOut"]["properties"]["forecasts"]["items"] == {"$ref": "#/components/schemas/SeriesOut"}


def test_leaps_are_told_as_far_as_they_were_taken() -> None:
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
    first, second = (msgspec.to_builtins(leap) for leap in _leaps(trace)[0])
    assert (first["start"], first["end"], second["start"], second["end"]) == (0, 2, 2, 6)
    assert (first["scale"], second["scale"]) == ("short", "long")
    assert first["probabilities"] == {"short": 0.75, "mid": 0.0, "long": 0.25}
    assert (second["control"], second["temporal"]) == (2.0, 4.0)
    (other,) = _leaps(trace)[1]
    assert (other.start, other.end, other.scale, other.control) == (0, 6, "long", 5.0)


def test_of_very_many_series_a_description_names_a_hundred() -> None:
    names = tuple(f"s{number}" for number in range(150))
    fitted = SimpleNamespace(
        config=SimpleNamespace(h=6, input_size=12),
        tail=SimpleNamespace(freq="D", timezone=None, series=names),
        is_multivariate=False,
    )
    arrays = SimpleNamespace(fitted=fitted, has_level=lambda level: level in (80, 95, 99))
    model = SimpleNamespace(id_col="i", time_col="t", target_col="v")
    served = cast("Served", SimpleNamespace(name="m", version="1", arrays=arrays, model=model))
    found = described(served)
    assert (found.series, found.series_count, found.levels) == (list(names[:100]), 150, [80, 95])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (msgspec.ValidationError("odd"), "bad-data"),
        (msgspec.DecodeError("odd"), "bad-request"),
        (UnicodeDecodeError("utf-8", b"odd", 0, 1, "odd"), "bad-request"),
        (RecursionError("odd"), "bad-request"),
    ],
)
def test_however_reading_fails_the_caller_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str) -> None:
    def fail(_: bytes) -> None:
        raise error

    monkeypatch.setattr(wire, "_DECODER", SimpleNamespace(decode=fail))
    with pytest.raises(Problem) as refused:
        decode(b"", cast("ModelRegistry", None), Limits())
    assert (refused.value.kind.name, refused.value.cure) == (kind, "see /docs for how a request looks")


@pytest.fixture
def asked(frame: pd.DataFrame) -> dict[str, Any]:
    return {"model": "apart", "series": histories(frame)}


def _decoded(registry: ModelRegistry, request: dict[str, Any], **limits: Any) -> Any:
    return decode(json.dumps(request).encode(), registry, Limits(**limits))


def _refused(registry: ModelRegistry, request: dict[str, Any], **limits: Any) -> Problem:
    with pytest.raises(Problem) as error:
        _decoded(registry, request, **limits)
    return error.value


def test_limits_are_taken_at_their_word(registry: ModelRegistry, asked: dict[str, Any]) -> None:
    assert len(_decoded(registry, asked, series=3, length=160).histories) == 3
    many, long = _refused(registry, asked, series=2), _refused(registry, asked, length=159)
    assert (many.kind.name, many.detail) == ("too-large", "the request has 3 series, and at most 2 are taken")
    assert "--max-series" in many.cure
    assert (long.kind.name, long.detail) == (
        "too-large",
        "the request has a series of 160 values, and at most 159 are taken",
    )
    assert "--max-length" in long.cure


def test_leaps_are_recorded_only_where_they_are_asked_for(
    registry: ModelRegistry, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _decoded(registry, asked).record == "nothing"
    assert _decoded(registry, {**asked, "trace": True}).record == "leaps"
    monkeypatch.setattr(Served, "traces", property(lambda _: False))
    assert _decoded(registry, asked).record == "nothing"
    refused = _refused(registry, {**asked, "trace": True})
    assert (refused.detail, refused.cure) == ("this model has no scheduling branch", "leave trace out")


def test_intervals_are_given_one_way_or_the_other(registry: ModelRegistry, asked: dict[str, Any]) -> None:
    def columns(**more: Any) -> list[str]:
        return [bound.column for bound in _decoded(registry, {**asked, **more}).bounds]

    assert columns() == columns(level=[]) == columns(quantiles=[]) == []
    assert columns(level=[80]) == ["LeapTS-lo-80", "LeapTS-hi-80"]
    assert len(columns(quantiles=[0.1, 0.5])) == 2
    assert _refused(registry, {**asked, "level": [80], "quantiles": [0.1]}).kind.name == "bad-data"
    assert _refused(registry, {**asked, "level": [], "quantiles": []}).kind.name == "bad-data"


def test_histories_of_one_length_or_several_with_holes_or_without_are_read_alike(
    registry: ModelRegistry, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [one["values"] for one in asked["series"]]
    whole = _decoded(registry, asked).histories
    np.testing.assert_array_equal(whole.tails, [one[-12:] for one in values])
    ragged = [{**one, "values": one["values"][skip:]} for skip, one in enumerate(asked["series"])]
    np.testing.assert_array_equal(_decoded(registry, {**asked, "series": ragged}).histories.tails, whole.tails)
    alone = _decoded(registry, {**asked, "series": asked["series"][:1]}).histories
    np.testing.assert_array_equal(alone.tails, whole.tails[:1])
    monkeypatch.setattr(registry.find("apart").arrays, "fill", "ffill")
    holes = [{**one, "values": [*one["values"][:-1], None]} for one in asked["series"]]
    filled = _decoded(registry, {**asked, "series": holes}).histories
    np.testing.assert_array_equal(filled.tails, [[*one[-12:-1], one[-2]] for one in values])


@pytest.mark.parametrize(("kind", "is_refused"), [("joint", True), ("apart", False)])
def test_series_forecast_together_end_together(
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


def test_an_answer_gives_each_series_its_own_row_timestamps_and_leaps(
    registry: ModelRegistry, asked: dict[str, Any]
) -> None:
    asked["series"][1]["last"] = "2024-02-01"
    request = _decoded(registry, {**asked, "last": "2024-01-01", "level": [80]})
    (made,) = request.served.arrays.forecast([request.histories])
    values = np.arange(18.0).reshape(3, 6)
    forecast = ArrayForecast(values=values, scale=made.scale, groups=made.groups, trace=None)
    found = json.loads(answer(request, forecast))
    assert [one["id"] for one in found["forecasts"]] == ["a", "b", "c"]
    assert [one["values"]["LeapTS"] for one in found["forecasts"]] == values.tolist()
    assert set(found["forecasts"][0]["values"]) == {"LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"}
    assert [one["stamps"][0][:10] for one in found["forecasts"]] == ["2024-01-02", "2024-02-02", "2024-01-02"]
    assert all("trace" not in one for one in found["forecasts"])
    assert (found["model"], found["h"], found["freq"]) == ("apart", 6, "D")
    assert found["version"] == request.served.version
