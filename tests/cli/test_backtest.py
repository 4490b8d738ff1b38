"""`leapts backtest` compares LeapTS with baselines."""

import csv
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leapts.cli.backtest import verdict
from leapts.forecasting.baselines import Naive
from leapts.forecasting.comparison import ModelScore
from tests.cli.conftest import FEW_STEPS, Leapts, table


def test_all_models_forecast_from_the_same_cutoffs(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "cv.csv"
    arguments = ["backtest", data, "--horizon", 6, "--windows", 3, "--level", 80, "-o", file, *FEW_STEPS]
    result = leapts(*arguments)
    assert (result.code, len(result.err.splitlines())) == (0, 1)
    assert all(fact in result.err for fact in ("MASE", "2 series", "season of 7", "--season-length"))
    for word in (
        "LeapTS",
        "LeapTS (coarse)",
        "SeasonalNaive",
        "Naive",
        "MAE",
        "RMSE",
        "MASE",
        "seconds",
        "inside 80 %",
        str(file),
    ):
        assert word in result.out
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 2 * 3 * 6
    assert len({row["cutoff"] for row in rows}) == 3
    # The waves repeat every week, so last week's value is right at every cutoff.
    assert all(abs(float(row["SeasonalNaive"]) - float(row["y"])) < 1e-3 for row in rows)


def test_json_has_scores_and_verdict(leapts: Leapts, data: Path) -> None:
    arguments = ["backtest", data, "--horizon", 6, "--windows", 2, "--step-size", 3, "--level", 80, *FEW_STEPS]
    answer = json.loads(leapts(*arguments, "--refit", "--json").out)
    ours, coarse, naive = answer["models"][:3]
    assert coarse["name"] == "LeapTS (coarse)"
    assert ours["p_value"] is None
    assert (ours["name"], naive["name"], answer["step_size"], answer["season"]) == ("LeapTS", "SeasonalNaive", 3, 7)
    assert naive["mae"] < 1e-3
    assert naive["coverage"] == {}
    assert "SeasonalNaive" in answer["verdict"]
    assert 0 <= ours["coverage"]["80"] <= 1


def test_missing_extra_of_baselines_is_noted(leapts: Leapts, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    result = leapts("backtest", data, "--horizon", 6, "--windows", 1, "--baselines", "stats", *FEW_STEPS)
    assert result.code == 0
    assert "pip install 'leapts[stats]'" in result.err


def test_values_after_a_cutoff_do_not_fill_gaps_before_it(leapts: Leapts, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=80)
    known = np.sin(np.arange(80) / 3)
    known[70:74] = np.nan
    forecasts = []
    for hidden in (0.5, 1e6):
        frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": np.where(np.arange(80) >= 74, hidden, known)})
        frame.to_csv(tmp_path / "gaps.csv", index=False)
        arguments = ["backtest", tmp_path / "gaps.csv", "--horizon", 6, "--windows", 1, "--fill", "interpolate"]
        result = leapts(*arguments, "-o", tmp_path / "cv.csv", *FEW_STEPS)
        assert result.code == 0, result.err
        assert "interpolation would use later values" in result.err
        forecasts.append(pd.read_csv(tmp_path / "cv.csv")["LeapTS"])
    pd.testing.assert_series_equal(forecasts[0], forecasts[1])


def test_statistical_baselines_are_compared_and_their_warnings_noted(
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
    result = leapts("backtest", file, "--horizon", 6, "--windows", 1, "--baselines", "stats", *FEW_STEPS)
    assert result.code == 0, result.err
    assert "AutoETS" in result.out
    assert "AutoTheta" in result.out
    assert "note: AutoETS cannot be fitted to 1 of 2 series" in result.err
    assert "too [bold]high[/bold]" in result.err
    file.write_text("ds,y\n" + "".join(f"{day},11\n" for day in pd.date_range("2024-01-01", periods=40).date))
    result = leapts("backtest", file, "--horizon", 6, "--windows", 1, "--baselines", "stats", *FEW_STEPS)
    assert result.code == 0, result.err
    assert "note: not compared with AutoETS: AutoETS cannot be fitted to 1 of 1 series" in result.err
    assert "AutoETS" not in result.out
    assert "inf" not in result.out  # of a constant series there is no MASE


def _score(name: str, mae: float, mase: float | None = None) -> ModelScore:
    scaled = mae if mase is None else mase
    return ModelScore(name=name, mae=mae, rmse=mae, mase=scaled, seconds=0, coverage={}, width={}, wql=None)


@pytest.mark.parametrize(
    ("ours", "naive", "facts"),
    [
        (0.88, 1.0, ["LeapTS has the lowest MAE", "12%", "below SeasonalNaive"]),
        (1.5, 1.0, ["LeapTS does not have the lowest MAE", "50%", "above SeasonalNaive"]),
        (1.0, 1.0, ["same MAE", "SeasonalNaive"]),
        (1.004, 1.0, ["same MAE", "SeasonalNaive"]),
        (0.0, 0.0, ["same MAE", "SeasonalNaive"]),
        (1.0, 0.0, ["does not have the lowest MAE", "SeasonalNaive"]),
    ],
)
def test_verdict_says_who_is_better_and_by_how_much(ours: float, naive: float, facts: list[str]) -> None:
    scores = [_score("LeapTS", ours), _score("LeapTS (coarse)", 0.1), _score("SeasonalNaive", naive)]
    text = verdict([*scores, _score("Naive", 9)])
    assert all(fact in text for fact in facts), text


def test_verdict_names_every_better_baseline() -> None:
    text = verdict([_score("LeapTS", 3), _score("A", 2), _score("B", 1), _score("C", 4)])
    assert all(fact in text for fact in ("200% above B", "A, B"))
    assert "C" not in text


def test_verdict_says_when_mase_disagrees() -> None:
    assert "MASE" not in verdict([_score("LeapTS", 1), _score("A", 2)])
    assert "A has the lowest MASE" in verdict([_score("LeapTS", 1, 1.7), _score("A", 2, 1.6)])
    assert "LeapTS has the lowest MASE" in verdict([_score("LeapTS", 2, 0.5), _score("A", 1, 1.6)])
    assert "MASE" not in verdict([_score("LeapTS", 1, float("inf")), _score("A", 2, float("inf"))])


def test_output_ends_with_the_verdict(leapts: Leapts, data: Path) -> None:
    result = leapts("backtest", data, "--horizon", 6, "--windows", 1, *FEW_STEPS)
    assert "lowest MAE" in result.out.splitlines()[-1]


def test_neural_baselines_run_only_on_request(leapts: Leapts, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def neural(season: int) -> tuple[Naive, ...]:
        asked.append(season)
        return (Naive("Expensive"),)

    monkeypatch.setattr("leapts.forecasting.baselines.neural_baselines", neural)
    arguments = ["backtest", data, "--horizon", 6, "--windows", 1, *FEW_STEPS, "--json"]
    assert "Expensive" not in leapts(*arguments).out
    assert asked == []
    for kinds in ("neural", "naive,neural"):
        assert "Expensive" in leapts(*arguments, "--baselines", kinds).out
    assert asked == [7, 7]


def test_unknown_kind_of_baselines_is_refused(leapts: Leapts, data: Path) -> None:
    result = leapts("backtest", data, "--horizon", 6, "--baselines", "stats,deep")
    assert (result.code, "--baselines 'deep'" in result.error_line) == (2, True)
