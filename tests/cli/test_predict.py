"""`leapts predict` as table, CSV, Parquet and JSON."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from leapts import LeapTS
from tests.cli.conftest import Leapts, environment, outside


def test_pipe_gets_csv_only(model: Path) -> None:
    result = outside(["predict", model, "--level", 80])
    assert (result.code, result.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert list(rows[0]) == ["unique_id", "ds", "LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"]
    assert len(rows) == 12
    assert all(float(row["LeapTS-lo-80"]) <= float(row["LeapTS"]) <= float(row["LeapTS-hi-80"]) for row in rows)


def test_broken_pipe_ends_without_a_message(model: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "leapts", "predict", str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 141


def test_file_format_follows_the_suffix(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    forecast, trace = tmp_path / "f.parquet", tmp_path / "t.csv"
    result = leapts("predict", model, data, "-o", forecast, "--trace", trace)
    assert result.code == 0
    assert str(forecast) in result.out
    assert str(trace) in result.out
    assert pyarrow.parquet.read_table(forecast).num_rows == 12
    leaps = list(csv.DictReader(trace.read_text().splitlines()))
    assert sum(int(leap["length"]) for leap in leaps) == 12


def test_json_has_the_forecast_or_the_file(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    answer = json.loads(leapts("predict", model, "--json").out)
    assert len(answer["forecast"]) == 12
    assert answer["forecast"][0]["ds"] == "2024-04-30"
    answer = json.loads(leapts("predict", model, "--json", "-o", tmp_path / "f.csv").out)
    assert answer["files"] == {"forecast": str(tmp_path / "f.csv")}
    assert "forecast" not in answer


def test_standard_input_is_forecast(leapts: Leapts, model: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    assert leapts("predict", model, "-").out == leapts("predict", model).out


def test_terminal_shows_the_first_rows_of_each_series(
    leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leapts.cli.predict.is_terminal", lambda: True)
    result = leapts("predict", model, "--level", 80)
    assert "lo-80" in result.out
    assert "2024-05-04" in result.out
    assert "2024-05-05" not in result.out
    assert "10 of 12 rows" in result.err


def test_trace_in_json_is_a_perfetto_timeline(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    result = leapts("predict", model, "-o", tmp_path / "f.csv", "--trace", tmp_path / "trace.json")
    assert result.code == 0, result.err
    assert "traceEvents" in json.loads((tmp_path / "trace.json").read_text())


def test_quantiles_and_samples_are_columns(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "forecast.csv"
    arguments = ["--quantile", "0.1,0.5", "--quantile", "0.95", "--samples", 3, "--random-seed", 7, "-o", file]
    assert leapts("predict", model, *arguments).code == 0
    written = pd.read_csv(file)
    expected = LeapTS.load(model).predict(quantiles=[0.1, 0.5, 0.95], n_samples=3, random_seed=7)
    assert list(written.columns) == list(expected.columns)
    np.testing.assert_allclose(written.iloc[:, 2:], expected.iloc[:, 2:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quantile", "80"], ["quantile 80.0", "between 0 and 1"]),
        (["--quantile", "a"], ["--quantile", "0.1,0.9"]),
        (["--quantile", "0.1", "--level", "80"], ["--level", "--quantile", "both"]),
        (["--samples", "-1"], ["--samples"]),
    ],
)
def test_impossible_quantiles_and_samples_are_refused(
    leapts: Leapts, model: Path, arguments: list[str], words: list[str]
) -> None:
    result = leapts("predict", model, *arguments)
    assert result.code != 0
    for word in words:
        assert word in result.err
