"""Every command does what it says, for people and for programs."""

import csv
import io
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from leapts import LeapTS, __version__
from leapts.data.catalogue import catalogue
from tests.cli.conftest import FEW_STEPS, Leapts, environment, outside, table

COMMANDS = [
    [],
    ["demo"],
    ["fit"],
    ["predict"],
    ["backtest"],
    ["tune"],
    ["export"],
    ["report"],
    ["analyse"],
    ["serve"],
    ["datasets"],
    ["datasets", "list"],
    ["datasets", "fetch"],
    ["datasets", "make"],
    ["version"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_shows_an_example(leapts: Leapts, command: list[str], flag: str) -> None:
    result = leapts(*command, flag)
    assert result.code == 0
    assert f"leapts {' '.join(command)}".strip() in result.out.split("Options:")[1]


@pytest.mark.parametrize("group", [[], ["datasets"]], ids=" ".join)
def test_a_group_alone_shows_its_help(leapts: Leapts, group: list[str]) -> None:
    assert leapts(*group) == leapts(*group, "--help")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version_is_the_packages(leapts: Leapts, arguments: list[str]) -> None:
    assert leapts(*arguments).out == f"leapts {__version__}\n"


def test_fit_writes_a_model_and_says_what_it_picked(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    result = leapts("fit", data, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS)
    assert (result.code, result.err) == (0, "")
    assert "val_size" in result.out
    assert "a tenth of the shortest series" in result.out
    assert str(tmp_path / "m") in result.out
    assert len(LeapTS.load(tmp_path / "m").predict()) == 12


def test_fit_passes_every_option_on(leapts: Leapts, tmp_path: Path) -> None:
    file = tmp_path / "shop.csv"
    lines = table(["x"]).splitlines()[1:]
    file.write_text("shop,day,sold\n" + "\n".join([*lines[:50], lines[49], *lines[51:]]) + "\n")
    options: list[object] = [
        "--id-col",
        "shop",
        "--time-col",
        "day",
        "--target-col",
        "sold",
        "--layout",
        "long",
        "--freq",
        "D",
    ]
    options += ["--fill", "interpolate", "--duplicates", "last", "--val-size", 20, "--learning-rate", 0.01, "--seed", 7]
    result = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS, *options)
    assert result.code == 0, result.err
    params = LeapTS.load(tmp_path / "m").get_params()
    assert params["target_col"] == "sold"
    assert (params["fill"], params["duplicates"], params["freq"]) == ("interpolate", "last", "D")
    assert (params["val_size"], params["learning_rate"], params["random_seed"]) == (20, 0.01, 7)


def test_columns_that_are_not_used_are_named(leapts: Leapts, tmp_path: Path) -> None:
    file = tmp_path / "shop.csv"
    pd.read_csv(io.StringIO(table())).assign(price=1.0).to_csv(file, index=False)
    many = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS)
    assert (many.code, many.err) == (0, "not used: 'price'; only 'y' is forecast\n")
    pd.read_csv(io.StringIO(table(["a"]))).assign(price=1.0)[["ds", "y", "price"]].to_csv(file, index=False)
    one = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS)
    assert one.err == "not used: 'price'; only 'y' is forecast (--layout wide takes each column for a series)\n"
    wide = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS, "--layout", "wide", "--json")
    assert (json.loads(wide.out)["series"], wide.err) == (2, "")


def test_fit_tells_programs_the_same_in_json(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    result = leapts("fit", data, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS, "--json")
    answer = json.loads(result.out)
    assert (answer["model"], answer["horizon"], answer["series"]) == (str(tmp_path / "m"), 6, 2)
    assert {pick["name"] for pick in answer["picked"]} >= {"val_size", "mixing"}
    assert answer["training"]["steps"] == 4


def test_fit_reads_standard_input(leapts: Leapts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table().encode())))
    result = leapts("fit", "-", "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS)
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_data_sets_are_known_by_name(leapts: Leapts, tmp_path: Path) -> None:
    for name in ("seattleweather", "dataset:SeattleWeather"):
        result = leapts("fit", name, "--horizon", 2, "--out", tmp_path / "m", *FEW_STEPS, "--json")
        assert json.loads(result.out)["series"] == 4


def test_a_file_wins_over_a_data_set_of_its_name(
    leapts: Leapts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("SeattleWeather").write_text(table(["only"]))
    result = leapts("fit", "SeattleWeather", "--horizon", 2, "--out", "m", *FEW_STEPS, "--json")
    assert json.loads(result.out)["series"] == 1


def test_options_override_the_configuration(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'horizon = 6\nmax-steps = 5\ninput_size = 12\nwindows = 2\nfreq = "D"\n'
        "[model]\nhidden_size = 8\n[training]\npatience = 3\n"
    )
    arguments = ["fit", data, "--config", config, "--max-steps", 3, "--out", tmp_path / "m", "--json"]
    answer = json.loads(leapts(*arguments).out)
    assert (answer["horizon"], answer["training"]["steps"]) == (6, 3)
    fitted = LeapTS.load(tmp_path / "m").fitted_
    assert (fitted.config.hidden_size, fitted.training.patience) == (8, 3)


def test_predict_into_a_pipe_is_clean_csv(model: Path) -> None:
    result = outside(["predict", model, "--level", 80])
    assert (result.code, result.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert list(rows[0]) == ["unique_id", "ds", "LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"]
    assert len(rows) == 12
    assert all(float(row["LeapTS-lo-80"]) <= float(row["LeapTS"]) <= float(row["LeapTS-hi-80"]) for row in rows)


def test_predict_stops_quietly_when_nobody_reads(model: Path) -> None:
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


def test_predict_writes_files_by_their_ending(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    forecast, trace = tmp_path / "f.parquet", tmp_path / "t.csv"
    result = leapts("predict", model, data, "-o", forecast, "--trace", trace)
    assert result.code == 0
    assert str(forecast) in result.out
    assert str(trace) in result.out
    assert pyarrow.parquet.read_table(forecast).num_rows == 12
    leaps = list(csv.DictReader(trace.read_text().splitlines()))
    assert sum(int(leap["length"]) for leap in leaps) == 12


def test_predict_gives_programs_json(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    answer = json.loads(leapts("predict", model, "--json").out)
    assert len(answer["forecast"]) == 12
    assert answer["forecast"][0]["ds"] == "2024-04-30"
    answer = json.loads(leapts("predict", model, "--json", "-o", tmp_path / "f.csv").out)
    assert answer["files"] == {"forecast": str(tmp_path / "f.csv")}
    assert "forecast" not in answer


def test_predict_forecasts_from_standard_input(
    leapts: Leapts, model: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    assert leapts("predict", model, "-").out == leapts("predict", model).out


def test_predict_shows_a_person_the_first_rows_of_each(
    leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leapts.cli.predict.is_terminal", lambda: True)
    result = leapts("predict", model, "--level", 80)
    assert "lo-80" in result.out
    assert "2024-05-04" in result.out
    assert "2024-05-05" not in result.out
    assert "10 of 12 rows" in result.err


def test_backtest_compares_from_the_same_cutoffs(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "cv.csv"
    arguments = ["backtest", data, "--horizon", 6, "--windows", 3, "--level", 80, "-o", file, *FEW_STEPS]
    result = leapts(*arguments, "--no-statistical", "--no-neural")
    note = "note: MASE leaves out 2 series, whose history has no change over a season of 7, or is no longer than that"
    assert (result.code, result.err) == (0, f"{note}; --season gives another\n")
    for word in ("LeapTS", "SeasonalNaive", "MAE", "RMSE", "MASE", "seconds", "inside 80 %", str(file)):
        assert word in result.out
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 2 * 3 * 6
    assert len({row["cutoff"] for row in rows}) == 3
    # The waves repeat every week, so last week's value is right at every cutoff.
    assert all(abs(float(row["SeasonalNaive"]) - float(row["y"])) < 1e-3 for row in rows)


def test_backtest_gives_programs_json(leapts: Leapts, data: Path) -> None:
    arguments = ["backtest", data, "--horizon", 6, "--windows", 2, "--step-size", 3, "--level", 80, *FEW_STEPS]
    answer = json.loads(leapts(*arguments, "--refit", "--json", "--no-statistical", "--no-neural").out)
    ours, naive = answer["models"][:2]
    assert (ours["name"], naive["name"], answer["step_size"], answer["season"]) == ("LeapTS", "SeasonalNaive", 3, 7)
    assert naive["mae"] < 1e-3
    assert naive["coverage"] == {}
    assert 0 <= ours["coverage"]["80"] <= 1


def test_backtest_says_which_baselines_are_missing(leapts: Leapts, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    result = leapts("backtest", data, "--horizon", 6, "--windows", 1, *FEW_STEPS)
    assert result.code == 0
    assert "pip install 'leapts[stats]'" in result.err


def test_backtest_does_not_interpolate_towards_what_a_cutoff_hides(leapts: Leapts, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=80)
    known = np.sin(np.arange(80) / 3)
    known[70:74] = np.nan
    forecasts = []
    for hidden in (0.5, 1e6):
        frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": np.where(np.arange(80) >= 74, hidden, known)})
        frame.to_csv(tmp_path / "gaps.csv", index=False)
        arguments = ["backtest", tmp_path / "gaps.csv", "--horizon", 6, "--windows", 1, "--fill", "interpolate"]
        result = leapts(*arguments, "-o", tmp_path / "cv.csv", "--no-statistical", "--no-neural", *FEW_STEPS)
        assert result.code == 0, result.err
        assert "interpolation looks ahead" in result.err
        forecasts.append(pd.read_csv(tmp_path / "cv.csv")["LeapTS"])
    pd.testing.assert_series_equal(forecasts[0], forecasts[1])


def test_backtest_takes_statistical_baselines_in_and_passes_their_warnings_on(
    leapts: Leapts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Last:
        def __init__(self, season_length: int) -> None:
            self.season = season_length

        def forecast(self, y: np.ndarray[Any, Any], h: int) -> dict[str, np.ndarray[Any, Any]]:
            if y[0] > 10.5:
                raise ValueError("too [bold]high[/bold]")
            return {"mean": np.full(h, y[-1])}

    models = types.SimpleNamespace(AutoETS=Last, AutoTheta=Last)
    monkeypatch.setitem(sys.modules, "statsforecast", types.SimpleNamespace(models=models))
    monkeypatch.setitem(sys.modules, "statsforecast.models", models)
    file = tmp_path / "waves.csv"
    file.write_text(table())
    result = leapts("backtest", file, "--horizon", 6, "--windows", 1, *FEW_STEPS)
    assert result.code == 0, result.err
    assert "AutoETS" in result.out
    assert "AutoTheta" in result.out
    assert "note: AutoETS cannot be fitted to 1 of 2 series" in result.err
    assert "too [bold]high[/bold]" in result.err
    file.write_text("ds,y\n" + "".join(f"{day},11\n" for day in pd.date_range("2024-01-01", periods=40).date))
    result = leapts("backtest", file, "--horizon", 6, "--windows", 1, "--no-neural", *FEW_STEPS)
    assert result.code == 0, result.err
    assert "note: not compared with AutoETS: AutoETS cannot be fitted to 1 of 1 series" in result.err
    assert "AutoETS" not in result.out
    assert "inf" not in result.out  # of a constant series there is no MASE


def test_demo_leaves_all_it_names(leapts: Leapts, tmp_path: Path) -> None:
    result = leapts("demo", "--out", tmp_path / "deep" / "demo", "--max-steps", 2)
    assert result.code == 0, result.err
    for name in ("model", "forecast.csv", "trace.csv", "forecast.svg", "report.html"):
        assert (tmp_path / "deep" / "demo" / name).exists()
        assert str(tmp_path / "deep" / "demo" / name) in result.out
    again = leapts("demo", "--out", tmp_path / "deep" / "demo", "--max-steps", 2, "--json")
    assert set(json.loads(again.out)["files"]) == {"model", "forecast", "trace", "picture", "report"}


def test_datasets_list_names_them_all(leapts: Leapts) -> None:
    out = leapts("datasets", "list").out
    assert all(name in out for name in catalogue())
    assert [row["name"] for row in json.loads(leapts("datasets", "list", "--json").out)["datasets"]] == list(
        catalogue()
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_datasets_make_simulates_into_a_file(leapts: Leapts, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"scenario{suffix}"
    result = leapts("datasets", "make", "scenario2", "--out", file, "--steps", 80)
    assert (result.code, result.out, result.err) == (0, f"{file}\n", "")
    answer = json.loads(leapts("fit", file, "--horizon", 4, "--out", tmp_path / "m", *FEW_STEPS, "--json").out)
    assert answer["series"] == 3


def test_datasets_fetch_takes_files_from_a_folder(leapts: Leapts, tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    unchecked = next(row for row in catalogue().values() if row.files and row.files[0].checksum is None)
    (source / unchecked.files[0].name).write_bytes(b"anything")
    result = leapts("datasets", "fetch", unchecked.name, "--from", source, "--to", target)
    assert (result.code, result.err) == (0, "")
    assert str(target / unchecked.files[0].name) in result.out


def _page_data(page: Path) -> dict[str, Any]:
    """What a report embeds."""
    text = page.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1].split("</script>")[0]
    data: dict[str, Any] = json.loads(text)
    return data


def test_report_writes_the_page_that_was_asked_for(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = leapts(
        "report", model, data, "-o", page, "--cutoffs", 3, "--step-size", 2, "--series", "b", "--level", 50, "--json"
    )
    assert result.code == 0, result.err
    assert json.loads(result.out) == {"model": str(model), "report": str(page), "bytes": page.stat().st_size}
    shown = _page_data(page)
    assert shown["afters"] == [8, 6, 0]
    assert [series["name"] for series in shown["series"]] == ["b"]
    assert shown["levels"] == [50]


def test_report_refuses_a_name_that_is_no_pages(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    result = leapts("report", model, data, "-o", tmp_path / "page.pdf")
    assert result.code == 2
    assert ".html" in result.error_line


def test_fit_and_backtest_write_reports_too(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    fitted, tested = tmp_path / "fitted.html", tmp_path / "tested.html"
    arguments = ["--horizon", 6, *FEW_STEPS]
    assert leapts("fit", data, "--out", tmp_path / "m", "--report", fitted, *arguments).code == 0
    assert _page_data(fitted)["model"]["errors"]["kind"] == "held out"
    result = leapts("backtest", data, "--windows", 2, "--no-statistical", "--report", tested, *arguments)
    assert result.code == 0, result.err
    shown = _page_data(tested)
    assert shown["afters"] == [12, 6, 0]
    assert shown["model"]["errors"]["kind"] == "new"


def test_analyse_shows_each_bin_and_all(leapts: Leapts, model: Path, data: Path) -> None:
    result = leapts("analyse", model, data, "--bins", 3)
    assert (result.code, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines() if line.strip()][-4:] == ["1", "2", "3", "all"]
    answer = json.loads(leapts("analyse", model, data, "--bins", 3, "--json").out)
    assert [one["windows"] for one in answer["bins"]] == [69, 69, 68]
    assert answer["overall"]["windows"] == 206
    assert answer["separation"] is None


def test_analyse_measures_groups_and_draws(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    result = leapts("analyse", model, data, "--groups", "^.", "--plot", figure, "--json")
    assert result.code == 0, result.err
    assert -1 <= json.loads(result.out)["separation"] <= 1
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(("pattern", "words"), [("(", "no regular expression"), ("zzz", "matches nothing")])
def test_analyse_refuses_groups_that_make_no_sense(
    leapts: Leapts, model: Path, data: Path, pattern: str, words: str
) -> None:
    result = leapts("analyse", model, data, "--groups", pattern)
    assert result.code == 2
    assert words in result.error_line


def test_predict_writes_a_timeline(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    result = leapts("predict", model, "-o", tmp_path / "f.csv", "--trace", tmp_path / "trace.json")
    assert result.code == 0, result.err
    assert "traceEvents" in json.loads((tmp_path / "trace.json").read_text())
