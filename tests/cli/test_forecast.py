"""`leapts forecast` needs nothing but a table and a horizon."""

import json
from pathlib import Path

import pandas as pd
import pytest

from leapts import LeapTS
from leapts.datasets.catalogue import find
from leapts.datasets.loading import load_dataset
from tests.cli.conftest import Leapts


def test_a_forecast_is_that_of_the_pretrained_model(leapts: Leapts, tmp_path: Path) -> None:
    target = tmp_path / "forecast.csv"
    assert leapts("forecast", "ShopSales", "--horizon", "6", "--level", "80,95", "--out", str(target)).code == 0
    expected = LeapTS.pretrained(h=6).predict(load_dataset(find("ShopSales")), level=[80, 95])
    found = pd.read_csv(target)
    assert list(found.columns) == list(expected.columns)
    pd.testing.assert_series_equal(found["LeapTS-lo-80"], expected["LeapTS-lo-80"], check_dtype=False)


def test_json_has_the_rows(leapts: Leapts) -> None:
    answer = json.loads(leapts("forecast", "ShopSales", "--horizon", "3", "--json").out)
    assert (answer["model"], answer["horizon"]) == ("pretrained", 3)
    assert len(answer["forecast"]) % 3 == 0


@pytest.mark.parametrize("horizon", ["0", "1001"])
def test_a_horizon_out_of_range_is_refused(leapts: Leapts, horizon: str) -> None:
    result = leapts("forecast", "ShopSales", "--horizon", horizon)
    assert result.code == 2
    assert horizon in result.err


def test_a_report_shows_the_forecasts_of_all_series(leapts: Leapts, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = leapts("forecast", "ShopSales", "--horizon", "4", "--report", str(page), "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["files"] == {"report": str(page)}
    assert "ice_cream_parlor" in page.read_text()
