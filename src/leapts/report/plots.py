"""Figures for notebooks and papers. Each function draws on the axes it is given, or on new ones, and returns them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from leapts.analysis import Embedding, VolatilityBin
from leapts.core import ScheduleTrace
from leapts.core.scales import SCALE_NAMES
from leapts.errors import ConfigError
from leapts.forecaster.tracing import leaps_of
from leapts.report.picture import COLOURS, INK, MUTED, PAST, bands_of, latest, rows_of
from leapts.training import TrainingReport
from leapts.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, for groups.
_GROUPS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


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
    """One series: history, forecast with intervals, and each leap as a coloured block and piece of line.

    Args:
        history: A long frame: series, stamp, value.
        forecast: The frame of `LeapTS.predict`.
        trace: The leaps that came with it.
        series: Whose forecast.
        actual: What happened, a long frame; drawn where given.
        shown: Steps of history; by default two horizons.
        ax: Where to draw.
    """
    ax = _axes(ax)
    ahead, leaps = rows_of(forecast, series, "the forecast"), rows_of(trace, series, "the trace")
    past = latest(rows_of(history, series, "the history"), shown or 2 * len(ahead))
    stamps, values = _columns(ahead, 1, 2)
    past_stamps, past_values = _columns(past, 1, 2)
    ax.plot(past_stamps, past_values, color=PAST, linewidth=1.3, label="history")
    for level, lower, upper in bands_of(ahead):
        if len(stamps) > 1:
            ax.fill_between(stamps, lower, upper, color=INK, alpha=0.12, linewidth=0, label=f"{level} %")
        else:  # between a point and itself there is nothing to fill
            ax.vlines(stamps, lower, upper, color=INK, alpha=0.12, linewidth=12, label=f"{level} %")
    every = np.concatenate([past_stamps[-1:], stamps])
    for leap in leaps.iter_rows(named=True):
        colour = COLOURS[leap["scale"]]
        ax.axvspan(every[leap["start"]], every[leap["end"]], facecolor=colour, alpha=0.12, edgecolor="none")
        if leap["start"]:
            ax.axvline(every[leap["start"]], color=colour, linewidth=0.8, linestyle=":", label="_edge")
        piece = slice(max(leap["start"] - 1, 0), leap["end"])
        ax.plot(
            stamps[piece],
            values[piece],
            color=colour,
            linewidth=2.2,
            marker="o" if len(stamps[piece]) == 1 else None,  # a line of one point is none
            label=f"{leap['scale']} {leap['length']}",
        )
    if actual is not None:
        happened = rows_of(actual, series, "the actual values")
        ax.plot(*_columns(happened, 1, 2), color=INK, linewidth=1.2, label="actual")
    _short_dates(ax)
    ax.set_title(printable(series), parse_math=False)
    ax.legend(frameon=False, fontsize="small", ncols=3)
    return _plain(ax)


def plot_trace(trace: Any, *, ax: "Axes | None" = None) -> "Axes":
    """All schedules at once: a lane for each series and cutoff, a coloured block for each leap."""
    ax = _axes(ax)
    rows = leaps_of(trace)
    id_col = rows.columns[0]
    cutoffs = {row["cutoff"] for row in rows.iter_rows(named=True)}
    lanes: dict[str, int] = {}
    for row in rows.iter_rows(named=True):
        name = str(row[id_col]) if len(cutoffs) == 1 else f"{row[id_col]}, {row['cutoff']}"
        lane = lanes.setdefault(name, len(lanes))
        ax.broken_barh(
            [(row["start"], row["length"])], (lane - 0.4, 0.8), facecolors=COLOURS[row["scale"]], edgecolor="white"
        )
    ax.set_yticks(range(len(lanes)), labels=[printable(name) for name in lanes], parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel("step of the horizon")
    _scale_legend(ax)
    return _plain(ax)


def plot_states(trace: ScheduleTrace, row: int = 0, *, ax: "Axes | None" = None) -> "Axes":
    """How the latent state of one forecast moves from leap to leap, a line of cells for each of its dimensions.

    Args:
        trace: Recorded with states: `model.fitted_.forecast(panel, record="states").trace`.
        row: Which forecast.
        ax: Where to draw.

    Raises:
        ConfigError: When the trace was recorded without states.
    """
    if trace.states is None:
        raise ConfigError("this trace holds no states; record them with forecast(panel, record='states')")
    ax = _axes(ax)
    states = trace.states[row, : int(trace.leaps[row]) + 1].T.numpy()
    size = float(np.abs(states).max()) or 1.0
    image = ax.imshow(states, aspect="auto", cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
    lengths = trace.length[row].tolist()
    ax.set_xticks(
        range(states.shape[1]), labels=["start", *(f"+{length}" for length in lengths[: states.shape[1] - 1])]
    )
    ax.set_xlabel("after each leap")
    ax.set_ylabel("dimension of the state")
    ax.figure.colorbar(image, ax=ax)
    return ax


def plot_scales(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """Share of each scale among the leaps, by volatility."""
    ax = _axes(ax)
    base = np.zeros(len(bins))
    for name in SCALE_NAMES:
        shares = np.array([one.scales[name] for one in bins])
        ax.bar(range(len(bins)), shares, bottom=base, color=COLOURS[name], label=name)
        base += shares
    ax.set_ylabel("share of leaps")
    ax.legend(frameon=False, ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    return _by_volatility(ax, bins)


def plot_contributions(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """What moves the state, the control signal or time, by volatility."""
    ax = _axes(ax)
    control = np.array([one.control for one in bins])
    ax.bar(range(len(bins)), control, color=INK, label="control")
    ax.bar(range(len(bins)), 1 - control, bottom=control, color="#c3c9cf", label="temporal")
    ax.set_ylabel("share of changes of state")
    ax.legend(frameon=False, ncols=2, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    return _by_volatility(ax, bins)


def plot_intensity(bins: Sequence[VolatilityBin], *, ax: "Axes | None" = None) -> "Axes":
    """Leaps a window, by volatility."""
    ax = _axes(ax)
    ax.plot(range(len(bins)), [one.leaps for one in bins], color=COLOURS["long"], marker="o", linewidth=2)
    ax.set_ylabel("leaps a window")
    return _by_volatility(ax, bins)


def plot_embedding(embedding: Embedding, *, ax: "Axes | None" = None) -> "Axes":
    """States on a plane, coloured by group, with the score of how well the groups keep apart."""
    ax = _axes(ax)
    groups = np.array(embedding.groups)
    for number, group in enumerate(dict.fromkeys(embedding.groups)):
        some = embedding.points[groups == group]
        colour = _GROUPS[number % len(_GROUPS)]
        ax.scatter(some[:, 0], some[:, 1], s=9, color=colour, label=printable(group), linewidths=0)
    ax.set_title(f"silhouette {embedding.separation:.2f}", fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
    legend = ax.legend(frameon=False, fontsize="small", markerscale=2)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a group is called what its series are called
    return ax


def plot_training(report: TrainingReport, *, ax: "Axes | None" = None) -> "Axes":
    """Held-out error while training, with the step whose weights were kept; the loss where nothing was held out."""
    ax = _axes(ax)
    curve, label = (
        (report.validations, "held-out mean absolute error") if report.validations else (report.losses, "loss")
    )
    steps, values = zip(*curve, strict=True) if curve else ((), ())
    ax.plot(steps, values, color=COLOURS["long"], linewidth=1.8)
    if report.validations:
        ax.axvline(report.best_step, color=MUTED, linestyle=":", label=f"best, step {report.best_step:,}")
        ax.legend(frameon=False, fontsize="small")
    ax.set_xlabel("step of training")
    ax.set_ylabel(label)
    return _plain(ax)


def new_figure(panels: int) -> "Figure":
    """A figure with so many axes side by side, that no window shows."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need: pip install 'leapts[plot]'") from error
    figure = Figure(figsize=(4.2 * panels, 3.6), layout="constrained")
    figure.subplots(1, panels)
    return figure


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need: pip install 'leapts[plot]'") from error
    return pyplot.subplots(layout="constrained")[1]


def _columns(rows: nw.DataFrame[Any], *places: int) -> tuple[Any, ...]:
    return tuple(rows.get_column(rows.columns[place]).to_numpy() for place in places)


def _by_volatility(ax: "Axes", bins: Sequence[VolatilityBin]) -> "Axes":
    ax.set_xticks(range(len(bins)), labels=[f"{one.low:.2g} to {one.high:.2g}" for one in bins])
    ax.set_xlabel("volatility of the look-back")
    return _plain(ax)


def _short_dates(ax: "Axes") -> None:
    """Labels of dates that say each year and month once, where the axis has dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, AutoDateLocator):
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _scale_legend(ax: "Axes") -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=COLOURS[name], label=name) for name in SCALE_NAMES]
    ax.legend(handles=handles, frameon=False, ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))


def _plain(ax: "Axes") -> "Axes":
    ax.spines[["top", "right"]].set_visible(False)
    return ax
