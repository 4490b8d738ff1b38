"""`leapts tune` searches, resumes, and writes what `leapts fit` takes."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from leapts import LeapTS
from tests.cli.conftest import Leapts

pytest.importorskip("optuna")

FEW = ["--horizon", 6, "--max-steps", 6, "--trials", 2]


def test_fit_with_the_best_options_has_the_same_validation_error(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    best, study = tmp_path / "best.toml", tmp_path / "search.db"
    result = leapts("tune", data, *FEW, "--seed", 3, "--study", study, "--out", best)
    assert (result.code, result.err) == (0, "")
    assert "2 trials" in result.out
    assert str(best) in result.out
    fitted = leapts("fit", data, "--config", best, "--out", tmp_path / "m", "--json")
    again = json.loads(leapts("tune", data, *FEW, "--seed", 3, "--study", study, "--json").out)
    assert json.loads(fitted.out)["training"]["best_validation"] == again["validation"]
    params = LeapTS.load(tmp_path / "m").get_params()
    assert params == {**again["best"], "training": params["training"]}


def test_best_options_are_printed_as_toml(leapts: Leapts, data: Path) -> None:
    result = leapts("tune", data, *FEW, "--learning-rate", 0.003)
    options = tomllib.loads(result.out)
    assert (options["horizon"], options["max-steps"], options["learning-rate"]) == (6, 6, 0.003)
    assert set(options["model"]) >= {"hidden_size", "normalization"}
    assert "2 trials" in result.err


def test_interrupted_search_names_the_study(
    leapts: Leapts, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("leapts.forecasting.estimator.fit", interrupt)
    result = leapts("tune", data, *FEW, "--study", tmp_path / "s.db")
    assert result.code == 130
    assert "run the same command to continue" in result.error_line
    assert "nothing is kept" in leapts("tune", data, *FEW).error_line


def test_only_toml_files_are_overwritten(leapts: Leapts, data: Path) -> None:
    before = data.read_bytes()
    result = leapts("tune", data, *FEW, "--out", data)
    assert (result.code, ".toml" in result.error_line) == (2, True)
    assert data.read_bytes() == before


def test_missing_folder_is_found_before_the_search(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    for option, name in (("--out", "where.toml"), ("--study", "where")):
        result = leapts("tune", data, *FEW, option, tmp_path / "no" / name)
        assert result.code == 2
        assert "does not exist" in result.error_line


def test_options_of_ray_need_engine_ray(leapts: Leapts, data: Path) -> None:
    assert "needs --engine ray" in leapts("tune", data, *FEW, "--address", "auto").error_line
    assert "--threads 2" in leapts("tune", data, *FEW, "--engine", "ray", "--threads", 2).error_line


def test_missing_ray_extra_is_named(leapts: Leapts, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("leapts.integrations.ray.tuning", "leapts.integrations.ray.forecast"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    result = leapts("tune", data, *FEW, "--engine", "ray")
    assert (result.code, "pip install 'leapts[ray]'" in result.error_line) == (2, True)


def test_missing_extra_is_named(leapts: Leapts, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = leapts("tune", data, *FEW)
    assert (result.code, "pip install 'leapts[tune]'" in result.error_line) == (2, True)
