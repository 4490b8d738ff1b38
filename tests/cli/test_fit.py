"""`leapts fit` writes a model and reports how it was made."""

import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from leapts import LeapTS
from tests.cli.conftest import FEW_STEPS, Leapts, page_data, table


def test_model_is_saved_and_auto_config_shown(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    result = leapts("fit", data, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS)
    assert (result.code, result.err) == (0, "")
    assert "val_size" in result.out
    assert "a tenth of the median series" in result.out
    assert str(tmp_path / "m") in result.out
    assert len(LeapTS.load(tmp_path / "m").predict()) == 12


def test_every_option_reaches_the_estimator(leapts: Leapts, tmp_path: Path) -> None:
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
    options += ["--loss", "huber", "--support", "0,40"]
    result = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS, *options)
    assert result.code == 0, result.err
    params = LeapTS.load(tmp_path / "m").get_params()
    assert params["target_col"] == "sold"
    assert (params["fill"], params["duplicates"], params["freq"]) == ("interpolate", "last", "D")
    assert (params["val_size"], params["learning_rate"], params["random_seed"]) == (20, 0.01, 7)
    assert (params["loss"], params["support"]) == ("huber", [0.0, 40.0])


def test_unused_columns_are_named(leapts: Leapts, tmp_path: Path) -> None:
    file = tmp_path / "shop.csv"
    pd.read_csv(io.StringIO(table())).assign(price=1.0).to_csv(file, index=False)
    many = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS)
    assert (many.code, many.err) == (0, "not used: 'price'; only 'y' is forecast\n")
    pd.read_csv(io.StringIO(table(["a"]))).assign(price=1.0)[["ds", "y", "price"]].to_csv(file, index=False)
    one = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS)
    assert one.err == "not used: 'price'; only 'y' is forecast (--layout wide reads each column as a series)\n"
    wide = leapts("fit", file, "--horizon", 3, "--out", tmp_path / "m", *FEW_STEPS, "--layout", "wide", "--json")
    assert (json.loads(wide.out)["series"], wide.err) == (2, "")


def test_json_has_auto_config_and_training(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    result = leapts("fit", data, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS, "--json")
    answer = json.loads(result.out)
    assert (answer["model"], answer["horizon"], answer["series"]) == (str(tmp_path / "m"), 6, 2)
    assert {one["option"] for one in answer["auto_config"]} >= {"val_size", "mixing"}
    assert answer["training"]["steps"] == 4


def test_standard_input_is_read(leapts: Leapts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table().encode())))
    result = leapts("fit", "-", "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS)
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_data_set_is_found_by_name(leapts: Leapts, tmp_path: Path) -> None:
    for name in ("seattleweather", "dataset:SeattleWeather"):
        result = leapts("fit", name, "--horizon", 2, "--out", tmp_path / "m", *FEW_STEPS, "--json")
        assert json.loads(result.out)["series"] == 4


def test_file_takes_precedence_over_data_set_of_the_same_name(
    leapts: Leapts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("SeattleWeather").write_text(table(["only"]))
    result = leapts("fit", "SeattleWeather", "--horizon", 2, "--out", "m", *FEW_STEPS, "--json")
    assert json.loads(result.out)["series"] == 1


def test_fit_and_backtest_write_reports(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    fitted, tested = tmp_path / "fitted.html", tmp_path / "tested.html"
    arguments = ["--horizon", 6, *FEW_STEPS]
    assert leapts("fit", data, "--out", tmp_path / "m", "--report", fitted, *arguments).code == 0
    assert page_data(fitted)["model"]["errors"]["kind"] == "held out"
    result = leapts("backtest", data, "--windows", 2, "--report", tested, *arguments)
    assert result.code == 0, result.err
    shown = page_data(tested)
    assert shown["afters"] == [12, 6, 0]
    assert shown["model"]["errors"]["kind"] == "new"
