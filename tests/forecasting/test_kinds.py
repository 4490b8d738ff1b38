"""Whatever kind of frame comes in, the same kind comes out: forecasts, back-tests and traces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leapts import LeapTS
from tests.forecasting.frames import H, make_forecaster, make_frame

KINDS: dict[str, tuple[type[Any], Callable[[pd.DataFrame], Any]]] = {
    "pandas": (pd.DataFrame, lambda frame: frame),
    "pandas of Arrow": (pd.DataFrame, lambda frame: frame.convert_dtypes(dtype_backend="pyarrow")),
    "pandas, nullable": (pd.DataFrame, lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable")),
    "pandas, names as objects": (pd.DataFrame, lambda frame: frame.astype({"unique_id": object})),
    "pandas, categories": (pd.DataFrame, lambda frame: frame.astype({"unique_id": "category"})),
    "polars": (pl.DataFrame, lambda frame: pl.DataFrame(frame.to_dict("list"))),
    "pyarrow": (pa.Table, lambda frame: pa.table({name: list(frame[name]) for name in frame})),
}


def plain(frame: Any) -> dict[str, list[Any]]:
    """Any kind of frame as lists."""
    columns: dict[str, list[Any]] = (
        frame.to_pydict()
        if isinstance(frame, pa.Table)
        else frame.to_dict(as_series=False)
        if isinstance(frame, pl.DataFrame)
        else frame.to_dict("list")
    )
    return columns


@pytest.fixture(scope="module")
def expected() -> tuple[LeapTS, Any, Any, Any]:
    """From pandas: the model, its forecast and trace, and a back-test."""
    frame = make_frame({"a": 90, "b": 90})
    model = make_forecaster(max_steps=4).fit(frame)
    return model, *model.predict(level=[80], return_trace=True), model.cross_validation(frame, 2, level=[80])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_comes_out_with_the_same_values(kind: str, expected: tuple[LeapTS, Any, Any, Any]) -> None:
    wanted, convert = KINDS[kind]
    model, forecast, trace, back = expected
    frame = convert(make_frame({"a": 90, "b": 90}))
    fitted = make_forecaster(max_steps=4).fit(frame)
    results = [
        (fitted.predict(level=[80], return_trace=True)[0], forecast),
        (fitted.predict(level=[80], return_trace=True)[1].to_frame(), trace.to_frame()),
        (fitted.cross_validation(frame, 2, level=[80]), back),
        # What goes in decides, not what the model was fitted on.
        (model.predict(frame, level=[80]), forecast),
    ]
    for mine, theirs in results:
        assert type(mine) is wanted
        assert plain(mine) == plain(theirs)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_loaded_model_remembers_the_kind(kind: str, tmp_path: Path) -> None:
    wanted, convert = KINDS[kind]
    make_forecaster(max_steps=2).fit(convert(make_frame({"a": 90}))).save(tmp_path / "model")
    forecast, trace = LeapTS.load(tmp_path / "model").predict(return_trace=True)
    assert isinstance(forecast, wanted)
    assert isinstance(trace.to_frame(), wanted)
    assert len(forecast) == H


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_wide_frames_come_out_long_and_of_their_kind(kind: str) -> None:
    wanted, convert = KINDS[kind]
    long = make_frame({"a": 90, "b": 90})
    wide = convert(long.pivot(index="ds", columns="unique_id", values="y").reset_index().rename_axis(columns=None))
    forecast = make_forecaster(max_steps=2).fit(wide).predict()
    assert isinstance(forecast, wanted)
    assert len(forecast) == 2 * H
