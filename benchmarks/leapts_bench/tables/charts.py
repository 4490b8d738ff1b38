"""Charts of the benchmark overview, drawn with matplotlib from the results."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leapts_bench.baselines import BASELINES
from leapts_bench.tables.against_paper import Standing
from leapts_bench.tables.baselines import compare
from leapts_bench.tables.summary import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = ("#3b6fb6", "#e08a2e", "#6a9f58")


def against_paper_chart(kinds: Mapping[str, Standing]) -> bytes:
    """Draw the relative difference from the paper's errors, for each data set and kind of model."""
    datasets = list(dict.fromkeys(name for found in kinds.values() for name in found.gaps))
    bars = {
        (metric, kind): [100 * found.gaps[name][column] if name in found.gaps else 0.0 for name in datasets]
        for column, metric in enumerate(("MSE", "MAE"))
        for kind, found in kinds.items()
    }
    return _draw(datasets, bars, "difference from the error in the paper, % (left of 0: LeapTS is better)")


def baselines_chart(of: Results) -> bytes:
    """Draw the relative difference of LeapTS from each baseline."""
    gaps = {metric: [compare(of, name, metric.lower()).gap for name in BASELINES] for metric in ("MSE", "MAE")}
    names = [name for place, name in enumerate(BASELINES) if all(values[place] is not None for values in gaps.values())]
    bars = {
        (metric, "all data sets"): [100 * gap for gap in values if gap is not None] for metric, values in gaps.items()
    }
    return _draw(names, bars, "difference from the error of the baseline, % (left of 0: LeapTS is better)")


def _draw(names: Sequence[str], bars: Mapping[tuple[str, str], Sequence[float]], label: str) -> bytes:
    """Draw grouped bars: one panel for each metric, one color for each kind."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(kind for _, kind in bars))
    # The salt and the missing date make equal results give equal files.
    with mpl.rc_context({"svg.hashsalt": "leapts", "font.size": 8.0}):
        figure = Figure(figsize=(8.0, 0.15 * len(names) * (1 + len(kinds) / 2) + 1.2), layout="constrained")
        panels = figure.subplots(1, 2, sharex=True, sharey=True, squeeze=False)[0]
        for panel, metric in zip(panels, ("MSE", "MAE"), strict=True):
            _panel(panel, names, [bars[metric, kind] for kind in kinds], kinds)
            panel.set_title(metric)
        if len(kinds) > 1:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        figure.supxlabel(label)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


def _panel(panel: "Axes", names: Sequence[str], values: Sequence[Sequence[float]], kinds: Sequence[str]) -> None:
    height = 0.8 / len(kinds)
    for number, (kind, heights) in enumerate(zip(kinds, values, strict=True)):
        places = [place + (number - (len(kinds) - 1) / 2) * height for place in range(len(names))]
        panel.barh(places, heights, height=height, label=kind, color=_COLORS[number])
    panel.axvline(0, color="black", linewidth=0.8)
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", length=0)
    panel.set_axisbelow(True)
    panel.grid(axis="x", linewidth=0.3)
    if not panel.yaxis_inverted():
        panel.invert_yaxis()
    panel.spines[["top", "right", "left"]].set_visible(False)
