"""Figures draw the given values."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from leapts import ConfigError, DataError, LeapTS
from leapts.forecasting.analysis import Embedding, VolatilityBin
from leapts.report import forecast_svg, plots
from leapts.report.plots import SCALE_COLORS
from leapts.training.early_stopping import TrainingReport
from tests.forecasting.frames import UNIVARIATE, make_forecaster
from tests.report.conftest import HOSTILE

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'leapts[plot]'")

BINS = tuple(
    VolatilityBin(
        windows=10,
        low=float(number),
        high=number + 1.0,
        control=0.2 + 0.1 * number,
        temporal=0.8 - 0.1 * number,
        scales={"short": 0.1 * number, "mid": 0.3, "long": 0.7 - 0.1 * number},
        leaps=1.5 + number,
    )
    for number in range(4)
)


@pytest.fixture
def ax() -> Any:
    """New axes, typed as Any, since the types of matplotlib do not describe what was drawn."""
    from matplotlib.figure import Figure

    return Figure().subplots()


def same(returned: object, ax: Any) -> bool:
    """Check that the given axes were returned."""
    return returned is ax


def _bars(ax: Any, container: int) -> list[float]:
    return [bar.get_height() for bar in ax.containers[container]]


def _rgb(color: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)


def test_plot_forecast_draws_history_forecast_intervals_and_leaps(model: LeapTS, data: pd.DataFrame, ax: Any) -> None:
    known = data.groupby("unique_id", sort=False).head(194)
    forecast, trace = model.predict(known, level=[80], return_trace=True)
    actual = data.groupby("unique_id", sort=False).tail(6)
    assert same(plots.plot_forecast(known, forecast, trace, "pears", actual=actual, ax=ax), ax)
    own, leaps = forecast[forecast["unique_id"] == "pears"], trace[trace["unique_id"] == "pears"]
    history, *pieces, happened = (line for line in ax.lines if line.get_label() != "_edge")
    np.testing.assert_array_equal(history.get_ydata(), known.loc[known["unique_id"] == "pears", "y"].tail(12))
    np.testing.assert_array_equal(happened.get_ydata(), actual.loc[actual["unique_id"] == "pears", "y"])
    assert [piece.get_color() for piece in pieces] == [SCALE_COLORS[scale] for scale in leaps["scale"]]
    # Each piece but the first starts where the one before ended.
    drawn = [np.asarray(piece.get_ydata()) for piece in pieces]
    values = np.concatenate([drawn[0], *(piece[1:] for piece in drawn[1:])])
    np.testing.assert_array_equal(values, own["LeapTS"])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(own["LeapTS-lo-80"].min())
    assert band.max() == pytest.approx(own["LeapTS-hi-80"].max())
    assert len(ax.patches) == len(leaps)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_suffix_chooses_the_format_of_the_file(
    model: LeapTS, data: pd.DataFrame, tmp_path: Path, suffix: str
) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    written = plots.write_forecast_plot(data, forecast, trace, "pears", tmp_path / f"figure{suffix}")
    start = written.read_bytes()[:200]
    assert {".png": b"PNG", ".svg": b"<svg", ".pdf": b"%PDF"}[suffix] in written.read_bytes()[:400], start


@pytest.mark.parametrize("name", HOSTILE)
def test_a_series_name_cannot_add_markup_to_a_picture(
    model: LeapTS, data: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    written = plots.write_forecast_plot(data, forecast, trace, name, tmp_path / "figure.svg")
    tags = {node.tag.rpartition("}")[2] for node in ElementTree.parse(written).iter()}
    assert not tags & {"script", "b", "a", "image", "foreignObject"}


def test_the_old_name_still_gives_svg_and_warns(model: LeapTS, data: pd.DataFrame) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    with pytest.warns(DeprecationWarning, match="write_forecast_plot"):
        text = forecast_svg(data, forecast, trace, "pears")
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_a_series_missing_from_a_frame_is_named(model: LeapTS, data: pd.DataFrame, ax: Any) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    with pytest.raises(DataError, match="the history has no series 'pears'"):
        plots.plot_forecast(data[data["unique_id"] == "plums"], forecast, trace, "pears", ax=ax)


@pytest.mark.parametrize("missing", [[0], [5], [4, 6], [11], list(range(12))])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_missing_values_are_gaps_in_the_history(
    model: LeapTS, data: pd.DataFrame, ax: Any, missing: list[int], kind: str
) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    history = data[data["unique_id"] == "pears"].tail(12).reset_index(drop=True)
    history.loc[missing, "y"] = float("nan")
    plots.plot_forecast(pl.from_pandas(history) if kind == "polars" else history, forecast, trace, "pears", ax=ax)
    drawn = np.asarray(ax.lines[0].get_ydata(), dtype=float)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(drawn)), missing)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e12])
def test_values_of_any_size_are_drawn_inside_the_axes(model: LeapTS, data: pd.DataFrame, ax: Any, size: float) -> None:
    forecast, trace = model.predict(data, level=[80], return_trace=True)
    history = data.assign(y=data["y"] * size)
    columns = [name for name in forecast.columns if name.startswith("LeapTS")]
    forecast[columns] *= size
    plots.plot_forecast(history, forecast, trace, "pears", ax=ax)
    low, high = ax.get_ylim()
    own = forecast.loc[forecast["unique_id"] == "pears", columns].to_numpy()
    assert low <= own.min() <= own.max() <= high


def test_plot_trace_draws_a_block_for_each_leap(model: LeapTS, data: pd.DataFrame, ax: Any) -> None:
    _, trace = model.predict(data[data["unique_id"].isin(["apples", "plums"])], return_trace=True)
    assert same(plots.plot_trace(trace, ax=ax), ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(trace["unique_id"].unique())
    blocks = [(collection.get_paths()[0].get_extents(), collection.get_facecolor()[0]) for collection in ax.collections]
    assert len(blocks) == len(trace)
    for (extent, color), (_, leap) in zip(blocks, trace.iterrows(), strict=True):
        assert (extent.x0, extent.x1) == (leap["start"], leap["end"])
        assert tuple(color[:3]) == pytest.approx(_rgb(SCALE_COLORS[leap["scale"]]))


def test_plot_states_draws_the_state_before_and_after_each_leap(model: LeapTS, data: pd.DataFrame, ax: Any) -> None:
    panel = model.read(data)
    trace = model.predictor_.predict(model.predictor_.windows(panel), "states").trace
    assert trace is not None
    assert trace.states is not None
    assert same(plots.plot_states(trace, 2, ax=ax), ax)
    drawn = ax.images[0].get_array()
    assert drawn is not None
    np.testing.assert_array_equal(drawn, trace.states[2, : int(trace.leaps[2]) + 1].T)
    bare = model.predictor_.predict(model.predictor_.windows(panel), "leaps").trace
    assert bare is not None
    with pytest.raises(ConfigError, match="record='states'"):
        plots.plot_states(bare, ax=ax)


def test_plot_scales_stacks_the_shares(ax: Any) -> None:
    assert same(plots.plot_scales(BINS, ax=ax), ax)
    for number, name in enumerate(("short", "mid", "long")):
        assert _bars(ax, number) == pytest.approx([one.scales[name] for one in BINS])
    assert ax.get_xticklabels()[1].get_text().split() == ["1", "to", "2"]


def test_plot_contributions_stacks_control_and_time(ax: Any) -> None:
    assert same(plots.plot_contributions(BINS, ax=ax), ax)
    assert _bars(ax, 0) == pytest.approx([one.control for one in BINS])
    assert _bars(ax, 1) == pytest.approx([one.temporal for one in BINS])


def test_plot_intensity_draws_leaps_per_window(ax: Any) -> None:
    assert same(plots.plot_intensity(BINS, ax=ax), ax)
    assert list(ax.lines[0].get_ydata()) == [1.5, 2.5, 3.5, 4.5]


def test_plot_embedding_draws_each_group_in_a_color(ax: Any) -> None:
    points = np.arange(12.0).reshape(6, 2)
    embedding = Embedding(points=points, groups=tuple("aabbba"), separation=0.42, separation_on_plane=0.5)
    assert same(plots.plot_embedding(embedding, ax=ax), ax)
    first, second = ax.collections
    np.testing.assert_array_equal(np.asarray(first.get_offsets()), points[[0, 1, 5]])
    np.testing.assert_array_equal(np.asarray(second.get_offsets()), points[[2, 3, 4]])
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert ax.get_title() == "silhouette 0.42"


def test_plot_training_draws_the_curve_and_the_best_step(ax: Any) -> None:
    report = TrainingReport(
        steps=30, best_step=20, best_validation=0.3, validations=[(10, 0.5), (20, 0.3), (30, 0.4)], losses=[(10, 1.0)]
    )
    assert same(plots.plot_training(report, ax=ax), ax)
    curve, best = ax.lines
    assert list(zip(curve.get_xdata(), curve.get_ydata(), strict=True)) == report.validations
    assert list(best.get_xdata()) == [20, 20]


def test_without_held_out_windows_the_loss_is_drawn(ax: Any) -> None:
    plots.plot_training(TrainingReport(steps=10, losses=[(5, 2.0), (10, 1.0)]), ax=ax)
    assert list(ax.lines[0].get_ydata()) == [2.0, 1.0]
    assert ax.get_ylabel() == "loss"


def test_axes_are_created_if_none_are_given() -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = plots.plot_intensity(BINS)
    assert drawn.figure is pyplot.gcf()
    pyplot.close("all")


@pytest.mark.parametrize("name", ["$\\frac{$", "$x^2$", "a\x1b[2J\nb"])
def test_a_name_is_drawn_literally(model: LeapTS, data: pd.DataFrame, ax: Any, name: str) -> None:
    history = data[data["unique_id"] == "apples"].assign(unique_id=name)
    forecast, trace = model.predict(history, return_trace=True)
    plots.plot_forecast(history, forecast, trace, name, ax=ax)
    assert not ax.title.get_parse_math()
    assert ax.get_title().isprintable()
    ax.clear()
    plots.plot_trace(trace, ax=ax)
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())
    ax.clear()
    embedding = Embedding(points=np.zeros((2, 2)), groups=(name, "b"), separation=0.4, separation_on_plane=0.5)
    plots.plot_embedding(embedding, ax=ax)
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
    ax.figure.canvas.draw()


def test_the_latest_history_is_drawn_for_rows_in_any_order(model: LeapTS, data: pd.DataFrame, ax: Any) -> None:
    forecast, trace = model.predict(data, return_trace=True)
    plots.plot_forecast(data[::-1], forecast, trace, "pears", ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), data.loc[data["unique_id"] == "pears", "y"].tail(12))


def test_a_horizon_of_one_step_has_a_marker_and_an_interval(data: pd.DataFrame, ax: Any) -> None:
    model = make_forecaster(h=1, val_size=20, **UNIVARIATE).fit(data)
    forecast, trace = model.predict(level=[80], return_trace=True)
    plots.plot_forecast(data, forecast, trace, "pears", ax=ax)
    own = forecast[forecast["unique_id"] == "pears"]
    assert ax.lines[1].get_marker() == "o"
    (low, high) = ax.collections[0].get_segments()[0][:, 1]
    assert [low, high] == pytest.approx([own["LeapTS-lo-80"].item(), own["LeapTS-hi-80"].item()])
