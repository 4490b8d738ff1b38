import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from leapts import DataError, LeapTS
from leapts.report.encode import timeline, write_trace
from tests.forecasting.frames import H


@pytest.fixture(scope="module")
def trace(model: LeapTS, data: pd.DataFrame) -> pd.DataFrame:
    leaps: pd.DataFrame = model.predict(data, return_trace=True)[1].to_frame()
    return leaps


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_a_timeline_has_a_slice_for_each_leap_on_its_series_track(trace: pd.DataFrame, kind: Any) -> None:
    events = timeline(kind(trace))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert len(slices) == len(trace)
    for event, (_, row) in zip(slices, trace.iterrows(), strict=True):
        assert tracks[event["tid"]] == row["unique_id"]
        assert event["name"] == f"{row['scale']} {row['length']}"
        assert (event["ts"], event["dur"]) == (1000 * row["start"], 1000 * row["length"])
        assert event["args"]["control"] == pytest.approx(row["control"])
    for track in tracks:
        assert sum(event["dur"] for event in slices if event["tid"] == track) == 1000 * H


def test_each_cutoff_is_a_process(trace: pd.DataFrame) -> None:
    later = trace.assign(cutoff=trace["cutoff"] + pd.Timedelta(days=H))
    events = timeline(pd.concat([trace, later]))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert len(names) == 2
    assert names[0] == f"cutoff {trace['cutoff'].iloc[0]}"


@pytest.mark.parametrize("name", ["trace.parquet", "trace.csv"])
def test_written_tables_can_be_read(trace: pd.DataFrame, name: str, tmp_path: Path) -> None:
    path = write_trace(trace, tmp_path / name)
    back = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path)
    assert back["length"].tolist() == trace["length"].tolist()
    assert back["unique_id"].tolist() == trace["unique_id"].tolist()


def test_the_suffix_json_writes_a_timeline(trace: pd.DataFrame, tmp_path: Path) -> None:
    path = write_trace(trace, tmp_path / "trace.json")
    assert json.loads(path.read_text(encoding="utf-8")) == timeline(trace)


def test_other_suffixes_are_refused(trace: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.json"):
        write_trace(trace, tmp_path / "trace.txt")
