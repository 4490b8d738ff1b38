"""Tables in, forecasts and reports out."""

import asyncio
import io
import time
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pandas as pd
import pytest
from fastapi import FastAPI, Response

from leapts import DataError, LeapTS
from leapts.server import Limits, tables
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry, Served
from leapts.server.request_body import BodyReader
from leapts.server.tables import add_tables
from tests.server.conftest import client_of

CSV = {"Content-Type": "text/csv"}
URL = "/v1/forecast/csv"
TABLE = b"unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"


class Model:
    """Notes what it is asked to forecast."""

    id_col, time_col, target_col, fill, duplicates = "unique_id", "ds", "y", None, "error"

    def __init__(self) -> None:
        self.levels: list[object] = []
        self.under_way, self.most_under_way = 0, 0
        self.seconds = 0.0

    def predict(self, _: object, *, level: object) -> str:
        self.levels.append(level)
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        time.sleep(self.seconds)
        self.under_way -= 1
        return "forecast"


class Door:
    """The addresses that take tables, in front of such a model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
        self.model, self.reader, self.safe = Model(), BodyReader(Limits(**limits)), list[bool]()
        tail = SimpleNamespace(freq="D")
        self.served = cast(
            "Served", SimpleNamespace(model=self.model, arrays=SimpleNamespace(fitted=SimpleNamespace(tail=tail)))
        )
        self.app = FastAPI()
        self.app.add_exception_handler(Problem, self._refuse)
        self.stop = add_tables(self.app, cast("ModelRegistry", self), self.reader)
        monkeypatch.setattr(tables, "csv_bytes", self._written)

    def _written(self, forecast: str, *, escape_formulas: bool) -> bytes:
        self.safe.append(escape_formulas)
        assert self.reader.in_work["table"] >= 1
        return forecast.encode()

    async def _refuse(self, _: object, problem: Exception) -> Response:
        assert isinstance(problem, Problem)
        return Response(problem.kind.name, problem.kind.status)

    def find(self, _: str | None) -> Served:
        return self.served

    def post(self, path: str = URL, *, times: int = 1, **query: Any) -> list[httpx.Response]:
        async def main() -> list[httpx.Response]:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://here") as client:
                asked = [client.post(path, params=query, content=TABLE, headers=CSV) for _ in range(times)]
                return await asyncio.gather(*asked)

        return asyncio.run(main())


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    return Door(monkeypatch)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 200),
        ({"level": [0.5, 99.5]}, 200),
        ({"level": [80] * 20}, 200),
        ({"level": [80] * 21}, 422),
        ({"level": [0]}, 422),
        ({"level": [100]}, 422),
        ({"model": "x" * 1000}, 200),
        ({"model": "x" * 1001}, 422),
        ({"id_col": "x" * 1001}, 422),
        ({"safe_cells": "perhaps"}, 422),
    ],
)
def test_parameters_are_taken_up_to_their_limits(door: Door, query: dict[str, Any], status: int) -> None:
    (answer,) = door.post(**query)
    assert answer.status_code == status


def test_levels_reach_the_model_as_they_are_written(door: Door) -> None:
    for query in ({}, {"level": [80, 99.5]}, {"safe_cells": "true"}):
        (answer,) = door.post(**query)
        assert answer.text == "forecast"
        assert answer.headers["content-disposition"] == 'attachment; filename="forecast.csv"'
    assert [repr(levels) for levels in door.model.levels] == ["None", "[80, 99.5]", "None"]
    assert door.safe == [False, False, True]


def test_tables_are_worked_on_one_at_a_time_in_their_places(door: Door) -> None:
    door.model.seconds = 0.05
    answers = door.post(times=4)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert door.model.most_under_way == 1
    assert door.reader.in_work["table"] == 0


def test_who_finds_no_place_is_refused_before_the_table_is_read(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.reader.in_work["table"] = 4
    monkeypatch.setattr(door.reader, "body", None)
    (answer,) = door.post()
    assert (answer.status_code, answer.text) == (503, "busy")


def test_work_that_takes_too_long_keeps_its_place_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(monkeypatch, seconds=0.05)
    door.model.seconds = 0.3

    async def main() -> tuple[int, str, int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(door.app), base_url="http://here") as client:
            answer = await client.post(URL, content=TABLE, headers=CSV)
            kept = door.reader.in_work["table"]
            async with asyncio.timeout(10):
                while door.reader.in_work["table"]:
                    await asyncio.sleep(0.01)
            return answer.status_code, answer.text, kept

    assert asyncio.run(main()) == (503, "too-slow-to-answer", 1)
    assert door.safe == [False]


def test_what_nobody_waits_for_any_more_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(monkeypatch, seconds=0.1)
    door.model.seconds = 0.5
    answers = door.post(times=4)
    assert [answer.text for answer in answers] == ["too-slow-to-answer"] * 4
    assert door.reader.in_work["table"] == 1
    time.sleep(1.0)
    assert door.safe == [False]


def test_an_end_drops_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(monkeypatch)
    door.model.seconds = 0.3

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(door.app), base_url="http://here") as client:
            asked = [asyncio.create_task(client.post(URL, content=TABLE, headers=CSV)) for _ in range(3)]
            await asyncio.sleep(0.1)
            door.stop()
            await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(main())
    assert len(door.safe) == 1


def test_a_report_shows_two_hundred_series(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(tables, "collect", lambda *_, max_series: shown.append(max_series))
    monkeypatch.setattr(tables, "report_html", lambda _, title: f"<p>{title}</p>")
    (answer,) = door.post("/v1/report")
    assert (shown, answer.text) == ([200], "<p>LeapTS forecast</p>")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def _narrow(header: bytes, series: int = 5) -> None:
    tables._require_narrow(header, Limits(series=series))


@pytest.mark.parametrize("separator", [b",", b";", b"\t", b"|"])
def test_a_table_may_have_a_hundred_columns_more_than_series(separator: bytes) -> None:
    _narrow(separator.join([b"c"] * 105) + b"\n" + b",,," * 99)
    with pytest.raises(Problem, match="the table has 106 columns, and at most 105 are taken") as refused:
        _narrow(b"\r\n " + separator.join([b"c"] * 106))
    assert refused.value.kind.name == "too-large"
    assert "--max-series" in refused.value.cure
    with pytest.raises(Problem, match="the table has 106 columns"):
        _narrow(b"\xef\xbb\xbf\n" + separator.join([b"c"] * 106))
    with pytest.raises(Problem, match="the table has 106 columns"):
        _narrow(separator * 105 + b"\n\n\na,b")  # blank names are names


def test_quotation_marks_of_a_header_are_closed_in_it() -> None:
    _narrow(b'"a","b"\n"c')
    for header in (b'"a\nb",c\n', b'"a","b\r\n', b'"""'):
        with pytest.raises(Problem, match="goes on over its first line") as refused:
            _narrow(header)
        assert refused.value.kind.name == "bad-data"


def _panel(door: Door, series: int, length: int, **columns: Any) -> Any:
    names = {"id_col": "unique_id", "time_col": "ds", "target_col": "y", **columns}
    days = pd.date_range("2024-01-01", periods=length).strftime("%Y-%m-%d")
    rows = [f"s{number},{day},1" for number in range(series) for day in days]
    content = "\n".join([",".join(names.values()), *rows]).encode()
    return tables._panel(content, door.served, tables.Columns(**columns), Limits(series=3, length=4))


def test_a_panel_is_taken_up_to_its_limits(door: Door) -> None:
    panel = _panel(door, 3, 4)
    assert (len(panel), panel.lengths.tolist(), panel.freq) == (3, [4, 4, 4], "D")
    with pytest.raises(Problem, match="the table has 4 series, and at most 3 are taken") as refused:
        _panel(door, 4, 4)
    assert "--max-series" in refused.value.cure
    with pytest.raises(Problem, match="the table has a series of 5 values, and at most 4 are taken") as refused:
        _panel(door, 3, 5)
    assert "--max-length" in refused.value.cure


def test_gaps_are_filled_with_no_more_values_than_half_the_bytes_of_a_request(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "fill", "ffill")

    def filled(days: int) -> int:
        last = pd.Timestamp("2024-01-01") + pd.Timedelta(days=days - 1)
        content = f"unique_id,ds,y\na,2024-01-01,1\na,{last:%Y-%m-%d},2\n".encode()
        limits = Limits(body=1800, bodies=1800)
        return int(tables._panel(content, door.served, tables.Columns(), limits).lengths[0])

    assert filled(900) == 900
    with pytest.raises(DataError, match=r"would make 901 values"):
        filled(901)


@pytest.mark.parametrize("column", ["id_col", "time_col", "target_col"])
def test_a_column_that_is_named_is_taken_instead_of_the_models(door: Door, column: str) -> None:
    assert len(_panel(door, 2, 3, **{column: "other"})) == 2


def test_an_error_of_the_library_is_a_problem_with_its_cure() -> None:
    def fail(_: bytes) -> None:
        raise DataError("it is 1; give 2")

    with pytest.raises(Problem, match="it is 1") as refused:
        tables._in_problems(fail, b"")
    assert (refused.value.kind.name, refused.value.cure) == ("bad-data", "give 2")
    assert tables._in_problems(bytes.upper, b"a") == b"A"


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
def test_a_bad_table_is_told_what_is_wrong(registry: ModelRegistry, content: bytes, status: int, words: str) -> None:
    with client_of(registry, limits={"series": 20, "length": 200}) as client:
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
