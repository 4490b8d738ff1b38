"""The trace as an object: what `predict(return_trace=True)` gives beside the forecast."""

import copy
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leapts import ConfigError
from leapts.forecasting.trace_frame import Trace, leaps_of
from tests.forecasting.frames import UNIVARIATE, make_forecaster, make_frame

KINDS: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
CONVERT: dict[str, Any] = {"pandas": lambda x: x, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.fixture(scope="module", params=KINDS)
def came_in(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="module")
def trace(came_in: str) -> Trace:
    model = make_forecaster(**UNIVARIATE).fit(CONVERT[came_in](make_frame()))
    traced: Trace = model.predict(return_trace=True)[1]
    return traced


def test_the_frame_is_of_the_kind_that_came_in(trace: Trace, came_in: str) -> None:
    assert type(trace.to_frame()) is KINDS[came_in]


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_the_same_in_every_kind(trace: Trace, kind: Any) -> None:
    frame = trace.to_frame(kind)
    assert type(frame) is KINDS[kind]
    assert len(frame) == len(trace)
    assert list(leaps_of(frame).columns) == list(leaps_of(trace).columns)
    assert leaps_of(frame).rows() == leaps_of(trace).rows()


@pytest.mark.parametrize("name", ["cutoff", "leap", "scale", "p_long"])
def test_names_of_series_are_not_written_over(name: str) -> None:
    frame = make_frame().rename(columns={"unique_id": name})
    model = make_forecaster(id_col=name, max_steps=1, **UNIVARIATE).fit(frame)
    assert name in model.predict().columns
    with pytest.raises(ConfigError, match=f"the trace has its own column '{name}'"):
        model.predict(return_trace=True)


def test_another_kind_is_refused(trace: Trace) -> None:
    with pytest.raises(ConfigError, match="no kind 'spark'"):
        trace.to_frame("spark")  # type: ignore[arg-type]


def test_it_answers_as_its_frame_does(trace: Trace, came_in: str) -> None:
    assert list(trace["length"]) == list(trace.to_frame()["length"])
    assert trace.shape == trace.to_frame().shape
    assert repr(trace) == repr(trace.to_frame())
    with pytest.raises(AttributeError, match="nowhere"):
        _ = trace.nowhere
    if came_in == "pandas":
        assert trace.groupby("unique_id")["length"].sum().nunique() == 1


def test_readers_of_arrow_take_it_as_it_is(trace: Trace) -> None:
    assert pl.DataFrame(trace)["length"].to_list() == list(leaps_of(trace).get_column("length").to_list())
    assert pa.table(trace).num_rows == len(trace)


def test_a_copy_is_a_trace(trace: Trace) -> None:
    assert leaps_of(copy.copy(trace)).rows() == leaps_of(trace).rows()
