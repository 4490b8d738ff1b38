"""`POST /v1/forecast` gives the numbers of `predict`."""

import io
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from leapts import LeapTS
from tests.forecasting.frames import H, make_forecaster, make_frame
from tests.server.conftest import NAMES, client_of, histories

URL = "/v1/forecast"


def _table(answer: dict[str, Any]) -> pd.DataFrame:
    rows = [pd.DataFrame({"unique_id": one["id"], **one["values"]}) for one in answer["forecasts"]]
    return pd.concat(rows, ignore_index=True)


@pytest.mark.parametrize("kind", ["multivariate", "univariate"])
@pytest.mark.parametrize("trace", [False, True])
def test_the_forecast_equals_predict(
    request: pytest.FixtureRequest, client: httpx.Client, frame: pd.DataFrame, kind: str, trace: bool
) -> None:
    model: LeapTS = request.getfixturevalue(kind)
    asked = {"model": kind, "series": histories(frame), "level": [80, 95], "trace": trace}
    answer = client.post(URL, json=asked)
    assert answer.status_code == 200, answer.text
    expected = model.predict(frame, level=[80, 95]).drop(columns="ds")
    pd.testing.assert_frame_equal(_table(answer.json()), expected, check_dtype=False, rtol=1e-5)
    assert answer.json()["h"] == H
    assert answer.json()["freq"] == "D"


def test_quantiles_equal_those_of_predict(client: httpx.Client, frame: pd.DataFrame, univariate: LeapTS) -> None:
    asked = {"model": "univariate", "series": histories(frame), "quantiles": [0.1, 0.5]}
    expected = univariate.predict(frame, quantiles=[0.1, 0.5]).drop(columns="ds")
    pd.testing.assert_frame_equal(_table(client.post(URL, json=asked).json()), expected, check_dtype=False, rtol=1e-5)


@pytest.mark.parametrize("kind", ["multivariate", "univariate"])
def test_sample_paths_are_those_of_predict(
    request: pytest.FixtureRequest, client: httpx.Client, frame: pd.DataFrame, kind: str
) -> None:
    model: LeapTS = request.getfixturevalue(kind)
    asked = {"model": kind, "series": histories(frame), "samples": 3, "random_seed": 9}
    expected = model.predict(frame, n_samples=3, random_seed=9)
    found = _table(client.post(URL, json=asked).json())
    pd.testing.assert_frame_equal(found, expected.drop(columns="ds"), check_dtype=False, rtol=1e-5)
    query: dict[str, Any] = {"model": kind, "samples": 3, "random_seed": 9, "quantiles": [0.1, 0.9]}
    answer = client.post(
        f"{URL}/csv", params=query, content=frame.to_csv(index=False), headers={"Content-Type": "text/csv"}
    )
    assert answer.status_code == 200, answer.text
    table = pd.read_csv(io.StringIO(answer.text))
    assert {"LeapTS-lo-80", "LeapTS-hi-80"} < set(table.columns)
    np.testing.assert_allclose(table["LeapTS-sample-3"], expected["LeapTS-sample-3"], rtol=1e-5)


def test_series_are_in_the_order_of_the_request(client: httpx.Client, frame: pd.DataFrame) -> None:
    series = histories(frame)
    forward = client.post(URL, json={"model": "multivariate", "series": series}).json()["forecasts"]
    backward = client.post(URL, json={"model": "multivariate", "series": series[::-1]}).json()["forecasts"]
    assert [one["id"] for one in backward] == list(NAMES[::-1])
    for one, other in zip(forward, backward[::-1], strict=True):
        np.testing.assert_allclose(one["values"]["LeapTS"], other["values"]["LeapTS"], rtol=1e-6)


def test_the_trace_equals_that_of_predict(client: httpx.Client, frame: pd.DataFrame, multivariate: LeapTS) -> None:
    answer = client.post(URL, json={"model": "multivariate", "series": histories(frame), "trace": True}).json()
    _, expected = multivariate.predict(frame, return_trace=True)
    for one in answer["forecasts"]:
        leaps = expected[expected["unique_id"] == one["id"]]
        assert [leap["end"] - leap["start"] for leap in one["trace"]] == leaps["length"].tolist()
        assert [leap["scale"] for leap in one["trace"]] == leaps["scale"].tolist()
        chances = [leap["probabilities"]["long"] for leap in one["trace"]]
        np.testing.assert_allclose(chances, leaps["p_long"], rtol=1e-4)
        assert one["trace"][0]["start"] == 0
        assert one["trace"][-1]["end"] == H


def test_trace_and_timestamps_are_left_out_unless_requested(client: httpx.Client, frame: pd.DataFrame) -> None:
    answer = client.post(URL, json={"model": "univariate", "series": histories(frame)}).json()
    assert all(set(one) == {"id", "values"} for one in answer["forecasts"])


@pytest.mark.parametrize("last", ["2024-06-08", "2024-06-08T00:00:00", "2024-06-08T06:30:00"])
def test_timestamps_continue_from_the_last_one(client: httpx.Client, frame: pd.DataFrame, last: str) -> None:
    answer = client.post(URL, json={"model": "univariate", "series": histories(frame), "last": last}).json()
    expected = pd.date_range(last, periods=H + 1)[1:]
    for one in answer["forecasts"]:
        assert pd.to_datetime(one["timestamps"]).tolist() == expected.tolist()


def test_a_series_may_end_at_a_timestamp_of_its_own(client: httpx.Client, frame: pd.DataFrame) -> None:
    series = [{**one, "last": f"2024-06-0{day}"} for day, one in enumerate(histories(frame), start=1)]
    found = client.post(URL, json={"model": "univariate", "series": series}).json()["forecasts"]
    assert [one["timestamps"][0][:10] for one in found] == ["2024-06-02", "2024-06-03", "2024-06-04"]
    refused = client.post(URL, json={"model": "multivariate", "series": series})
    assert refused.status_code == 422
    assert "different timestamps" in refused.json()["detail"]


def test_timestamps_follow_daylight_saving(tmp_path_factory: pytest.TempPathFactory) -> None:
    from leapts.server.registry import ModelRegistry

    frame = make_frame(start="2024-01-01")
    frame["ds"] = frame["ds"].dt.tz_localize("Europe/Paris")
    folder = tmp_path_factory.mktemp("zone") / "zone"
    make_forecaster(model={"mixing": {"kind": "none"}, "hidden_size": 8}, max_steps=1).fit(frame).save(folder)
    with client_of(ModelRegistry([folder])) as client:
        series = histories(frame)[:1]
        winter = client.post(URL, json={"series": series, "last": "2024-10-25T00:00:00+02:00"}).json()
        timestamps = winter["forecasts"][0]["timestamps"]
        assert timestamps[0] == "2024-10-26T00:00:00+02:00"
        assert timestamps[2] == "2024-10-28T00:00:00+01:00"
        naive = client.post(URL, json={"series": series, "last": "2024-10-25"}).json()
        assert naive["forecasts"][0]["timestamps"] == timestamps


def test_missing_values_are_imputed_as_in_the_fit(
    frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from leapts.server.registry import ModelRegistry

    folder = tmp_path_factory.mktemp("filling") / "filling"
    model = make_forecaster(model={"mixing": {"kind": "none"}, "hidden_size": 8}, max_steps=1, fill="ffill").fit(frame)
    model.save(folder)
    holes = frame.copy()
    holes.loc[[150, 151, 300], "y"] = np.nan
    series = [
        {**one, "values": [None if value != value else value for value in one["values"]]} for one in histories(holes)
    ]
    with client_of(ModelRegistry([folder])) as client:
        found = _table(client.post(URL, json={"series": series}).json())
    pd.testing.assert_frame_equal(found, model.predict(holes).drop(columns="ds"), check_dtype=False, rtol=1e-5)


def test_the_only_model_needs_no_name(folders: object, frame: pd.DataFrame) -> None:
    from pathlib import Path

    from leapts.server.registry import ModelRegistry

    assert isinstance(folders, Path)
    with client_of(ModelRegistry([f"other={folders / 'univariate'}"])) as client:
        assert client.post(URL, json={"series": histories(frame)}).json()["model"] == "other"


def test_models_are_listed_with_their_properties(client: httpx.Client) -> None:
    models = client.get("/v1/models").json()["models"]
    assert [(one["name"], one["multivariate"], one["levels"]) for one in models] == [
        ("multivariate", True, [80, 95]),
        ("univariate", False, [80, 95]),
    ]
    assert models[0]["series"] == list(NAMES)
    assert models[0]["input_size"] == 12
