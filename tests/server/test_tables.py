"""Forecasts and reports of CSV tables."""

import asyncio
import io
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pandas as pd
import pytest

from leapts import DataError, LeapTS
from leapts.server import Limits, routes, tables
from leapts.server.app import create_app
from leapts.server.model import ServedModel
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from leapts.server.schemas import TableIn
from tests.server.conftest import client_of

CSV = {"Content-Type": "text/csv"}
URL = "/v1/forecast/csv"
TABLE = b"unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"


class Model:
    """Records the panels that it is asked to forecast."""

    id_col, time_col, target_col, fill, duplicates = "unique_id", "ds", "y", None, "error"

    def __init__(self) -> None:
        self.levels: list[object] = []
        self.under_way, self.most_under_way = 0, 0
        self.seconds = 0.0

    def predict(self, _: object, *, level: object, **_options: object) -> str:
        self.levels.append(level)
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        time.sleep(self.seconds)
        self.under_way -= 1
        return "forecast"


class Endpoint:
    """Make the application with a recording model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
        self.model, self.safe = Model(), list[bool]()
        predictor = SimpleNamespace(config=SimpleNamespace(h=2))
        served = SimpleNamespace(name="m", version="1", estimator=self.model, predictor=predictor, freq="D")
        self.served = cast("ServedModel", served)
        self.app = create_app(cast("ModelRegistry", self), limits=Limits(**limits))
        self.services = self.app.state.services
        monkeypatch.setattr(routes, "csv_bytes", self._written)

    def _written(self, forecast: str, *, escape_formulas: bool) -> bytes:
        self.safe.append(escape_formulas)
        assert self.tables >= 1
        return forecast.encode()

    @property
    def tables(self) -> int:
        return int(self.services.admission.in_progress["table"])

    def __iter__(self) -> Iterator[ServedModel]:
        yield self.served

    def find(self, _: str | None) -> ServedModel:
        return self.served

    def post(self, path: str = URL, *, times: int = 1, **query: Any) -> list[httpx.Response]:
        async def main() -> list[httpx.Response]:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://here") as client:
                asked = [client.post(path, params=query, content=TABLE, headers=CSV) for _ in range(times)]
                return await asyncio.gather(*asked)

        return asyncio.run(main())


def _kind(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("/docs#")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    return Endpoint(monkeypatch)


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
        ({"escape_formulas": "perhaps"}, 422),
    ],
)
def test_parameters_up_to_their_limits_are_accepted(endpoint: Endpoint, query: dict[str, Any], status: int) -> None:
    (answer,) = endpoint.post(**query)
    assert answer.status_code == status


def test_whole_levels_stay_whole_in_column_names(endpoint: Endpoint) -> None:
    for query in ({}, {"level": [80, 99.5]}, {"escape_formulas": "true"}):
        (answer,) = endpoint.post(**query)
        assert answer.text == "forecast"
        assert answer.headers["content-disposition"] == 'attachment; filename="forecast.csv"'
    assert [repr(levels) for levels in endpoint.model.levels] == ["None", "[80, 99.5]", "None"]
    assert endpoint.safe == [False, False, True]


def test_tables_are_processed_one_at_a_time(endpoint: Endpoint) -> None:
    endpoint.model.seconds = 0.05
    answers = endpoint.post(times=4)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert endpoint.model.most_under_way == 1
    assert endpoint.tables == 0


def test_a_request_without_a_slot_is_refused_before_its_table_is_read(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.services.admission.in_progress["table"] = 4
    monkeypatch.setattr(endpoint.services.bodies, "receive", None)
    (answer,) = endpoint.post()
    assert (answer.status_code, _kind(answer)) == (503, "busy")


def test_slow_work_keeps_its_slot_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(monkeypatch, seconds=0.05)
    endpoint.model.seconds = 0.3

    async def main() -> tuple[int, str, int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(endpoint.app), base_url="http://here") as client:
            answer = await client.post(URL, content=TABLE, headers=CSV)
            kept = endpoint.tables
            async with asyncio.timeout(10):
                while endpoint.tables:
                    await asyncio.sleep(0.01)
            return answer.status_code, _kind(answer), kept

    assert asyncio.run(main()) == (503, "too-slow-to-answer", 1)
    assert endpoint.safe == [False]


def test_work_of_a_client_that_left_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(monkeypatch, seconds=0.1)
    endpoint.model.seconds = 0.5
    answers = endpoint.post(times=4)
    assert [_kind(answer) for answer in answers] == ["too-slow-to-answer"] * 4
    assert endpoint.tables == 1
    time.sleep(1.0)
    assert endpoint.safe == [False]


def test_stopping_drops_work_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(monkeypatch)
    endpoint.model.seconds = 0.3

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(endpoint.app), base_url="http://here") as client:
            asked = [asyncio.create_task(client.post(URL, content=TABLE, headers=CSV)) for _ in range(3)]
            await asyncio.sleep(0.1)
            endpoint.services.tables.stop()
            await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(main())
    assert len(endpoint.safe) == 1


def test_a_report_shows_two_hundred_series(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(routes, "collect", lambda *_, max_series: shown.append(max_series))
    monkeypatch.setattr(routes, "report_html", lambda _, title: f"<p>{title}</p>")
    (answer,) = endpoint.post("/v1/report")
    assert (shown, answer.text) == ([200], "<p>LeapTS forecast</p>")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def _narrow(header: bytes, series: int = 5) -> None:
    tables._check_header(header, Limits(series=series))


@pytest.mark.parametrize("separator", [b",", b";", b"\t", b"|"])
def test_a_table_may_have_a_hundred_columns_more_than_series(separator: bytes) -> None:
    _narrow(separator.join([b"c"] * 105) + b"\n" + b",,," * 99)
    with pytest.raises(Problem, match="the table has 106 columns; the limit is 105") as refused:
        _narrow(b"\r\n " + separator.join([b"c"] * 106))
    assert refused.value.kind.name == "too-large"
    assert "--max-series" in refused.value.hint
    with pytest.raises(Problem, match="the table has 106 columns"):
        _narrow(b"\xef\xbb\xbf\n" + separator.join([b"c"] * 106))
    with pytest.raises(Problem, match="the table has 106 columns"):
        _narrow(separator * 105 + b"\n\n\na,b")  # blank names are names


def test_an_unclosed_quotation_mark_in_the_header_is_refused() -> None:
    _narrow(b'"a","b"\n"c')
    for header in (b'"a\nb",c\n', b'"a","b\r\n', b'"""'):
        with pytest.raises(Problem, match="after its first line") as refused:
            _narrow(header)
        assert refused.value.kind.name == "bad-data"


def _panel(endpoint: Endpoint, series: int, length: int, **columns: Any) -> Any:
    names = {"id_col": "unique_id", "time_col": "ds", "target_col": "y", **columns}
    days = pd.date_range("2024-01-01", periods=length).strftime("%Y-%m-%d")
    rows = [f"s{number},{day},1" for number in range(series) for day in days]
    content = "\n".join([",".join(names.values()), *rows]).encode()
    return tables.read_table(content, endpoint.served, TableIn(**columns), Limits(series=3, length=4))


def test_tables_up_to_the_limits_are_accepted(endpoint: Endpoint) -> None:
    panel = _panel(endpoint, 3, 4)
    assert (len(panel), panel.lengths.tolist(), panel.freq) == (3, [4, 4, 4], "D")
    with pytest.raises(Problem, match="the table has 4 series; the limit is 3") as refused:
        _panel(endpoint, 4, 4)
    assert "--max-series" in refused.value.hint
    with pytest.raises(Problem, match="the table has a series of 5 values; the limit is 4") as refused:
        _panel(endpoint, 3, 5)
    assert "--max-length" in refused.value.hint


def test_imputed_values_are_limited_by_the_size_of_a_request(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "fill", "ffill")

    def filled(days: int) -> int:
        last = pd.Timestamp("2024-01-01") + pd.Timedelta(days=days - 1)
        content = f"unique_id,ds,y\na,2024-01-01,1\na,{last:%Y-%m-%d},2\n".encode()
        limits = Limits(body=1800, bodies=1800)
        return int(tables.read_table(content, endpoint.served, TableIn(), limits).lengths[0])

    assert filled(900) == 900
    with pytest.raises(DataError, match=r"would make 901 values"):
        filled(901)


@pytest.mark.parametrize("column", ["id_col", "time_col", "target_col"])
def test_a_given_column_replaces_that_of_the_model(endpoint: Endpoint, column: str) -> None:
    assert len(_panel(endpoint, 2, 3, **{column: "other"})) == 2


def test_the_forecast_of_a_table_equals_predict(
    client: httpx.Client, frame: pd.DataFrame, multivariate: LeapTS
) -> None:
    answer = client.post(
        URL, params={"model": "multivariate", "level": [80, 95]}, content=frame.to_csv(index=False), headers=CSV
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    found = pd.read_csv(io.BytesIO(answer.content), parse_dates=["ds"])
    pd.testing.assert_frame_equal(found, multivariate.predict(frame, level=[80, 95]), check_dtype=False, rtol=1e-6)


def test_columns_may_have_other_names(client: httpx.Client, frame: pd.DataFrame, univariate: LeapTS) -> None:
    renamed = frame.rename(columns={"unique_id": "shop", "ds": "when", "y": "sold"})
    columns = {"model": "univariate", "id_col": "shop", "time_col": "when", "target_col": "sold", "layout": "long"}
    answer = client.post(URL, params=columns, content=renamed.to_csv(index=False), headers=CSV)
    found = pd.read_csv(io.BytesIO(answer.content), parse_dates=["when"])
    assert list(found.columns) == ["shop", "when", "LeapTS"]
    pd.testing.assert_series_equal(found["LeapTS"], univariate.predict(frame)["LeapTS"], rtol=1e-6)


def test_a_report_is_a_page_in_a_sandbox(client: httpx.Client, frame: pd.DataFrame) -> None:
    answer = client.post("/v1/report", params={"model": "multivariate"}, content=frame.to_csv(index=False), headers=CSV)
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
        (b'"unique_id\n,ds,y\na,2024-01-01,1\n', 422, "quotation mark"),
        (b",".join(b"c%d" % number for number in range(300)) + b"\n", 413, "--max-series"),
        (b"unique_id,ds,y\n" + b"".join(b"s%d,2024-01-01,1\n" % number for number in range(30)), 413, "30 series"),
        (b"unique_id,ds,y\n" + b"".join(b"a,%d,1\n" % number for number in range(300)), 422, "freq"),
    ],
)
def test_a_bad_table_is_refused_with_the_reason(
    registry: ModelRegistry, content: bytes, status: int, words: str
) -> None:
    with client_of(registry, limits={"series": 20, "length": 200}) as client:
        for path in (URL, "/v1/report"):
            answer = client.post(path, params={"model": "univariate"}, content=content, headers=CSV)
            assert answer.status_code == status, answer.text
            problem = answer.json()
            assert words in f"{problem['detail']} {problem['hint']}"


@pytest.mark.parametrize(
    "parameters", [{"layout": "tall"}, {"level": "x"}, {"level": 0}, {"id_col": "y"}, {"model": "x" * 2000}]
)
def test_bad_parameters_are_refused(client: httpx.Client, frame: pd.DataFrame, parameters: dict[str, str]) -> None:
    asked = {"model": "univariate", **parameters}
    answer = client.post(URL, params=asked, content=frame.to_csv(index=False), headers=CSV)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


def test_formulas_are_escaped_when_requested(client: httpx.Client, frame: pd.DataFrame) -> None:
    body = frame.replace({"unique_id": {"a": "=1+1"}}).to_csv(index=False)
    parameters = {"model": "univariate"}
    plain = client.post("/v1/forecast/csv", params=parameters, content=body, headers={"Content-Type": "text/csv"})
    parameters["escape_formulas"] = "true"
    safe = client.post("/v1/forecast/csv", params=parameters, content=body, headers={"Content-Type": "text/csv"})
    assert pd.read_csv(io.BytesIO(plain.content))["unique_id"].unique().tolist() == ["=1+1", "b", "c"]
    assert pd.read_csv(io.BytesIO(safe.content))["unique_id"].unique().tolist() == ["'=1+1", "b", "c"]
