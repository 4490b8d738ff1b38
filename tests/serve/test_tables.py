"""Tables in, forecasts and reports out."""

import io

import httpx
import pandas as pd
import pytest

from leapts import LeapTS
from leapts.serve.models import Shelf
from tests.serve.conftest import client_of

CSV = {"Content-Type": "text/csv"}
URL = "/v1/forecast/csv"


def test_the_forecast_of_a_table_is_that_of_predict(client: httpx.Client, frame: pd.DataFrame, joint: LeapTS) -> None:
    answer = client.post(
        URL, params={"model": "joint", "level": [80, 95]}, content=frame.to_csv(index=False), headers=CSV
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    found = pd.read_csv(io.BytesIO(answer.content), parse_dates=["ds"])
    pd.testing.assert_frame_equal(found, joint.predict(frame, level=[80, 95]), check_dtype=False, rtol=1e-6)


def test_columns_may_have_other_names(client: httpx.Client, frame: pd.DataFrame, apart: LeapTS) -> None:
    renamed = frame.rename(columns={"unique_id": "shop", "ds": "when", "y": "sold"})
    columns = {"model": "apart", "id_col": "shop", "time_col": "when", "target_col": "sold", "layout": "long"}
    answer = client.post(URL, params=columns, content=renamed.to_csv(index=False), headers=CSV)
    found = pd.read_csv(io.BytesIO(answer.content), parse_dates=["when"])
    assert list(found.columns) == ["shop", "when", "LeapTS"]
    pd.testing.assert_series_equal(found["LeapTS"], apart.predict(frame)["LeapTS"], rtol=1e-6)


def test_a_report_is_a_page_that_can_reach_nothing(client: httpx.Client, frame: pd.DataFrame) -> None:
    answer = client.post("/v1/report", params={"model": "joint"}, content=frame.to_csv(index=False), headers=CSV)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"] == "sandbox allow-scripts"
    assert answer.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "default-src 'none'" in answer.text


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"", 422, "empty"),
        (b"PAR1....", 422, "Parquet"),
        (b"\x1f\x8b\x08\x00", 422, "gzip"),
        (b"PK\x03\x04", 422, "spreadsheet"),
        (b"unique_id,ds,y\na,2024-01-01,1\na,2024-01-03,2\n", 422, "fill"),
        (b"unique_id,ds,y\n" + b"a,2024-01-01,1\n", 422, "look-back"),
        (b'"unique_id\n,ds,y\na,2024-01-01,1\n', 422, "quotation mark"),
        (b",".join(b"c%d" % number for number in range(300)) + b"\n", 413, "--max-series"),
        (b"unique_id,ds,y\n" + b"".join(b"s%d,2024-01-01,1\n" % number for number in range(30)), 413, "30 series"),
        (b"unique_id,ds,y\n" + b"".join(b"a,%d,1\n" % number for number in range(300)), 422, "freq"),
    ],
)
def test_a_bad_table_is_told_what_is_wrong(shelf: Shelf, content: bytes, status: int, words: str) -> None:
    with client_of(shelf, limits={"series": 20, "length": 200}) as client:
        for path in (URL, "/v1/report"):
            answer = client.post(path, params={"model": "apart"}, content=content, headers=CSV)
            assert answer.status_code == status, answer.text
            problem = answer.json()
            assert words in f"{problem['detail']} {problem['cure']}"


@pytest.mark.parametrize(
    "parameters", [{"layout": "tall"}, {"level": "x"}, {"level": 0}, {"id_col": "y"}, {"model": "x" * 2000}]
)
def test_bad_parameters_are_refused(client: httpx.Client, frame: pd.DataFrame, parameters: dict[str, str]) -> None:
    asked = {"model": "apart", **parameters}
    answer = client.post(URL, params=asked, content=frame.to_csv(index=False), headers=CSV)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_safe_cells_are_asked_for(client: httpx.Client, frame: pd.DataFrame) -> None:
    body = frame.replace({"unique_id": {"a": "=1+1"}}).to_csv(index=False)
    parameters = {"model": "apart"}
    plain = client.post("/v1/forecast/csv", params=parameters, content=body, headers={"Content-Type": "text/csv"})
    parameters["safe_cells"] = "true"
    safe = client.post("/v1/forecast/csv", params=parameters, content=body, headers={"Content-Type": "text/csv"})
    assert pd.read_csv(io.BytesIO(plain.content))["unique_id"].unique().tolist() == ["=1+1", "b", "c"]
    assert pd.read_csv(io.BytesIO(safe.content))["unique_id"].unique().tolist() == ["'=1+1", "b", "c"]
