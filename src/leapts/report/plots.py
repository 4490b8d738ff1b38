"""Draw figures with matplotlib, for notebooks, papers and picture files.

Each `plot_` function draws on the axes it is given, or on new ones, and returns them.
"""

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from leapts.errors import ConfigError, DataError
from leapts.files import write_file
from leapts.forecasting.analysis import Embedding, VolatilityBin
from leapts.forecasting.trace_frame import leaps_of
from leapts.messages import listed, printable, quoted
from leapts.model import ScheduleTrace
from leapts.model.schedulers import SCALE_NAMES
from leapts.training.early_stopping import TrainingReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which people with any kind of color vision can tell apart.
SCALE_COLORS = {"short": "#E69F00", "mid": "#009E73", "long": "#0072B2"}
GROUP_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
INK, HISTORY_COLOR, MUTED, LIGHT = "#1a1a1a", "#80868b", "#5f6368", "#c3c9cf"
MAX_TITLE = 60  # characters
_LOWER = re.compile(r"-lo-([0-9.]+)$")


def plot_forecast(
    history: Any,
    forecast: Any,
    trace: Any,
    series: str | int,
    *,
    actual: Any = None,
    shown: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot one series: history, forecast with intervals, and its leaps.

    Each leap is a colored piece of the forecast line over a band of the same color.

    Args:
        history: A long frame: series, timestamp, value.
        forecast: The frame returned by `LeapTS.predict`.
        trace: The trace returned with it.
        series: The name of the series.
        actual: A long frame of the actual values, to compare with; optional.
        shown: Steps of history to draw; by default two horizons.
        ax: The axes to draw on.

    Raises:
        DataError: When one of the frames does not hold the series.
    """
    ax = _axes(ax)
    ahead, leaps = _rows_of(forecast, series, "the forecast"), _rows_of(trace, series, "the trace")
    past = _rows_of(history, series, "the history")
    past = past.sort(past.columns[1]).tail(shown or 2 * len(ahead))
    (timestamps, values), (past_timestamps, past_values) = _points(ahead), _points(past)
    ax.plot(past_timestamps, past_values, color=HISTORY_COLOR, linewidth=1.3, label="history")
    _draw_intervals(ax, timestamps, ahead)
    edges = np.concatenate([past_timestamps[-1:], timestamps])
    labeled = set()
    for leap in leaps.iter_rows(named=True):
        color = SCALE_COLORS[leap["scale"]]
        ax.axvspan(edges[leap["start"]], edges[leap["end"]], facecolor=color, alpha=0.12, edgecolor="none")
        if leap["start"]:
            ax.axvline(edges[leap["start"]], color=color, linewidth=0.8, linestyle=":", label="_edge")
        piece = slice(max(leap["start"] - 1, 0), leap["end"])
        marker = "o" if len(timestamps[piece]) == 1 else None  # a line of one point is invisible
        label = f"{'_' if leap['scale'] in labeled else ''}{leap['scale']} leap"
        ax.plot(timestamps[piece], values[piece], color=color, linewidth=2.2, marker=marker, label=label)
        labeled.add(leap["scale"])
    if actual is not None:
        ax.plot(*_points(_rows_of(actual, series, "the actual values")), color=INK, linewidth=1.2, label="actual")
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if isinstance(locator := ax.xaxis.get_major_locator(), AutoDateLocator):
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    title = printable(series)
    ax.set_title(title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…", parse_math=False)
    ax.set_ylabel(printable(past.columns[2]), parse_math=False)
    ax.legend(frameon=False, fontsize="small", ncols=6, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    return _plain(ax)


def write_forecast_plot(
    history: Any, forecast: Any, trace: Any, series: str | int, path: str | Path, *, shown: int | None = None
) -> Path:
    """Write the figure of `plot_forecast` to a file; the suffix chooses PNG, SVG or PDF.

    Raises:
        DataError: When one of the frames does not hold the series.
    """
    target = Path(path)
    figure = new_figure(1, width=9.0)
    plot_forecast(history, forecast, trace, series, shown=shown, ax=figure.axes[0])
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # no font has every character
        figure.savefig(buffer, format=target.suffix.lstrip(".") or "png", dpi=120)
    write_file(target, buffer.getvalue())
    return target


def plot_trace(trace: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Plot schedules: a lane for each series and cutoff, a colored block for each leap."""
    ax = _axes(ax)
    rows = leaps_of(trace)
    id_col = rows.columns[0]
    one_cutoff = rows.get_column("cutoff").n_unique() == 1
    lanes: dict[str, int] = {}
    for row in rows.iter_rows(named=True):
        name = str(row[id_col]) if one_cutoff else f"{row[id_col]}, {row['cutoff']}"
        lane = lanes.setdefault(name, len(lanes))
        ax.broken_barh(
            [(row["start"], row["length"])], (lane - 0.4, 0.8), facecolors=SCALE_COLORS[row["scale"]], edgecolor="white"
        )
    ax.set_yticks(range(len(lanes)), labels=[printable(name) for name in lanes], parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel("step of the horizon")
    for name in SCALE_NAMES:  # without values: only for the legend
        ax.bar([], [], color=SCALE_COLORS[name], label=name)
    ax.legend(frameon=False, ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    return _plain(ax)


def plot_states(trace: ScheduleTrace, row: int = 0, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the latent state of the forecast in a row before and after each leap, as a heat map.

    The trace needs states: `model.predictor_.predict(windows, "states").trace`.

    Raises:
        ConfigError: When the trace was recorded without states.
    """
    if trace.states is None:
        raise ConfigError("the trace has no states; record them with predict(windows, record='states')")
    ax = _axes(ax)
    states = trace.states[row, : int(trace.leaps[row]) + 1].T.numpy()
    size = float(np.abs(states).max()) or 1.0
    image = ax.imshow(states, aspect="auto", cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
    lengths = trace.length[row, : states.shape[1] - 1].tolist()
    ax.set_xticks(range(states.shape[1]), labels=["start", *(f"+{length}" for length in lengths)])
    ax.set_xlabel("after each leap")
    ax.set_ylabel("dimension of the state")
    ax.figure.colorbar(image, ax=ax)
    return ax


def plot_scales(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """Plot the share of each scale among the leaps, by volatility."""
    shares = {name: [one.scales[name] for one in bins] for name in SCALE_NAMES}
    return _stacked_bars(_axes(ax), bins, shares, "share of leaps")


def plot_contributions(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """Plot the control and temporal shares of changes of state, by volatility."""
    shares = {"control": [one.control for one in bins], "temporal": [1 - one.control for one in bins]}
    return _stacked_bars(_axes(ax), bins, shares, "share of changes of state")


def plot_intensity(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """Plot the number of leaps per window, by volatility."""
    ax = _axes(ax)
    ax.plot(range(len(bins)), [one.leaps for one in bins], color=SCALE_COLORS["long"], marker="o", linewidth=2)
    ax.set_ylabel("leaps per window")
    return _by_volatility(ax, bins)


def plot_embedding(embedding: Embedding, *, ax: "Axes | None" = None) -> "Axes":
    """Plot embedded states, colored by group, with their silhouette score."""
    ax = _axes(ax)
    groups = np.array(embedding.groups)
    for number, group in enumerate(dict.fromkeys(embedding.groups)):
        some = embedding.points[groups == group]
        color = GROUP_COLORS[number % len(GROUP_COLORS)]
        ax.scatter(some[:, 0], some[:, 1], s=9, color=color, label=printable(group), linewidths=0)
    ax.set_title(f"silhouette {embedding.separation:.2f}", fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
    legend = ax.legend(frameon=False, fontsize="small", markerscale=2)
    for text in legend.get_texts():
        text.set_parse_math(False)  # group names come from the data
    return ax


def plot_training(report: TrainingReport, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the validation error during training with the best step; without validation, the loss."""
    ax = _axes(ax)
    curve, label = (report.validations, "validation MAE") if report.validations else (report.losses, "loss")
    steps, values = zip(*curve, strict=True) if curve else ((), ())
    ax.plot(steps, values, color=SCALE_COLORS["long"], linewidth=1.8)
    if report.validations:
        ax.axvline(report.best_step, color=MUTED, linestyle=":", label=f"best, step {report.best_step:,}")
        ax.legend(frameon=False, fontsize="small")
    ax.set_xlabel("training step")
    ax.set_ylabel(label)
    return _plain(ax)


def new_figure(panels: int, *, width: float = 4.2) -> "Figure":
    """Create a figure with `panels` axes side by side, without opening a window."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels, 3.6), layout="constrained")
    figure.subplots(1, panels)
    return figure


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    _require_matplotlib()
    from matplotlib import pyplot

    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes


def _require_matplotlib() -> None:
    try:
        import matplotlib as _  # noqa: F401 - only whether it is installed
    except ImportError as error:
        raise ImportError("plots need: pip install 'leapts[plot]'") from error


def _rows_of(frame: Any, series: str | int, what: str) -> nw.DataFrame[Any]:
    """Select the rows of one series from a long frame or a trace."""
    table = leaps_of(frame)
    names = table.get_column(table.columns[0])
    rows: nw.DataFrame[Any] = table.filter(names == series)
    if len(rows) == 0:
        raise DataError(f"{what} has no series {quoted(series)}; it has {listed(names.unique().to_list())}")
    return rows


def _draw_intervals(ax: "Axes", timestamps: Any, forecast: nw.DataFrame[Any]) -> None:
    """Draw the intervals of a forecast, the widest first."""
    lower = {found[1]: column for column in forecast.columns[3:] if (found := _LOWER.search(column))}
    for level in sorted(lower, key=float, reverse=True):
        upper = f"{lower[level].removesuffix(f'-lo-{level}')}-hi-{level}"
        if upper not in forecast.columns:
            continue
        low, high = (forecast.get_column(column).to_list() for column in (lower[level], upper))
        style: dict[str, Any] = {"color": INK, "alpha": 0.12, "label": f"{level} % interval"}
        if len(timestamps) > 1:
            ax.fill_between(timestamps, low, high, linewidth=0, **style)
        else:  # there is no area between a point and itself
            ax.vlines(timestamps, low, high, linewidth=12, **style)


def _points(rows: nw.DataFrame[Any]) -> list[Any]:
    """Return the timestamps and values of a long frame."""
    return [rows.get_column(column).to_numpy() for column in rows.columns[1:3]]


def _stacked_bars(ax: "Axes", bins: Sequence[VolatilityBin], shares: dict[str, list[float]], label: str) -> "Axes":
    colors = {**SCALE_COLORS, "control": INK, "temporal": LIGHT}
    base = np.zeros(len(bins))
    for name, heights in shares.items():
        ax.bar(range(len(bins)), heights, bottom=base, color=colors[name], label=name)
        base += heights
    ax.set_ylabel(label)
    ax.legend(frameon=False, ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    return _by_volatility(ax, bins)


def _by_volatility(ax: "Axes", bins: Sequence[VolatilityBin]) -> "Axes":
    ax.set_xticks(range(len(bins)), labels=[f"{one.low:.2g}\nto {one.high:.2g}" for one in bins])
    ax.set_xlabel("volatility of the look-back")
    return _plain(ax)


def _plain(ax: "Axes") -> "Axes":
    ax.spines[["top", "right"]].set_visible(False)
    return ax
