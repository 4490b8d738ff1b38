"""The picture holds what the frames hold, and nothing in a name can break out of it."""

import xml.etree.ElementTree as ElementTree

import pandas as pd
import polars as pl
import pytest

from leapts.errors import DataError
from leapts.report import forecast_svg
from leapts.report.picture import COLOURS, HEIGHT, INK, WIDTH

SVG = "{http://www.w3.org/2000/svg}"


def frames(name: str = "a", level: float = 3.0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    days = pd.date_range("2024-01-01", periods=28)
    values = [level + (number % 7) * (level != 0) for number in range(28)]
    history = pd.DataFrame({"unique_id": name, "ds": days[:20], "y": values[:20]})
    forecast = pd.DataFrame({"unique_id": name, "ds": days[20:], "LeapTS": values[20:]})
    forecast["LeapTS-lo-80"] = forecast["LeapTS"] - 1
    forecast["LeapTS-hi-80"] = forecast["LeapTS"] + 1
    trace = pd.DataFrame(
        {"unique_id": name, "cutoff": days[19], "start": [0, 2], "end": [2, 8], "scale": ["short", "long"]}
    )
    return history, forecast, trace


def fills(svg: str) -> list[str | None]:
    """The colours of the row of leaps."""
    root = ElementTree.fromstring(svg)
    return [block.get("fill") for block in root.iter(f"{SVG}rect") if block.get("height") == "16"]


def test_every_leap_is_a_block_of_its_scale() -> None:
    assert fills(forecast_svg(*frames(), "a")) == [COLOURS["short"], COLOURS["long"]]


def test_leaps_cover_the_horizon_without_gap_or_overlap() -> None:
    root = ElementTree.fromstring(forecast_svg(*frames(), "a"))
    blocks = [block for block in root.iter(f"{SVG}rect") if block.get("height") == "16"]
    edges = [(float(block.get("x", 0)), float(block.get("x", 0)) + float(block.get("width", 0))) for block in blocks]
    assert edges[1][0] - edges[0][1] == pytest.approx(1.5, abs=0.2)
    (line,) = (line for line in root.iter(f"{SVG}polyline") if line.get("stroke") == INK)
    steps = [float(point.split(",")[0]) for point in line.get("points", "").split()]
    # The first block begins between the last value of the history and the first of the forecast.
    assert edges[0][0] == pytest.approx(steps[0] - (steps[1] - steps[0]) / 2, abs=1)
    assert edges[-1][1] == pytest.approx(steps[-1], abs=1)


def test_everything_is_on_the_paper() -> None:
    _require_on_paper(forecast_svg(*frames(), "a"))


def _require_on_paper(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    shapes = [*root.iter(f"{SVG}polyline"), *root.iter(f"{SVG}polygon")]
    points = [point for shape in shapes for point in shape.get("points", "").split()]
    assert points
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a"b&c', "\x1b[31m\x00", "]]>", "x" * 500])
def test_a_name_cannot_break_out(name: str) -> None:
    svg = forecast_svg(*frames(name), name)
    root = ElementTree.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert "\x1b" not in svg


@pytest.mark.parametrize("level", [0.0, 1e-9, 1e12, -5.0])
def test_any_size_of_value_can_be_drawn(level: float) -> None:
    _require_on_paper(forecast_svg(*frames(level=level), "a"))


def test_a_constant_series_without_intervals_can_be_drawn() -> None:
    history, forecast, trace = frames(level=0.0)
    _require_on_paper(forecast_svg(history, forecast[["unique_id", "ds", "LeapTS"]], trace, "a"))


@pytest.mark.parametrize("missing", [[0], [5], [4, 6], [19], list(range(20))])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_missing_values_are_gaps_in_the_line(missing: list[int], kind: str) -> None:
    history, forecast, trace = frames()
    history.loc[missing, "y"] = float("nan")
    shown = history if kind == "pandas" else pl.from_pandas(history)  # where they are nulls
    root = ElementTree.fromstring(forecast_svg(shown, forecast, trace, "a", shown=20))
    lines = [line for line in root.iter(f"{SVG}polyline") if line.get("stroke-width") == "1.6"]
    points = [point for line in lines for point in line.get("points", "").split()]
    assert len(set(points)) == 20 - len(missing)
    assert "nan" not in ElementTree.tostring(root, encoding="unicode")
    assert len(lines) == {0: 1, 5: 2, 4: 3, 19: 1}[missing[0]] if len(missing) < 20 else not lines


def test_a_series_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="the history has no series 'b'"):
        forecast_svg(*frames(), "b")


def test_a_horizon_of_one_step_can_be_seen() -> None:
    history, forecast, trace = frames()
    trace = pd.DataFrame({"unique_id": "a", "cutoff": trace["cutoff"][0], "start": [0], "end": [1], "scale": ["short"]})
    root = ElementTree.fromstring(forecast_svg(history, forecast.head(1), trace, "a"))
    for shape in [*root.iter(f"{SVG}polyline"), *root.iter(f"{SVG}polygon")]:
        places = {point.split(",")[0] for point in shape.get("points", "").split()}
        assert len(places) > 1


def test_the_history_is_drawn_in_the_order_of_time() -> None:
    history, forecast, trace = frames()
    assert forecast_svg(history[::-1], forecast, trace, "a") == forecast_svg(history, forecast, trace, "a")
