"""Charts of the GIFT-Eval page: error against seconds, and against number of weights."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from leapts_bench.gift.published import TRAINED
from leapts_bench.gift.running import FLAIR, SEASONAL_NAIVE
from leapts_bench.tables.gift import NOT_RUN, OURS, Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {"zero-shot": "#3b6fb6", "pretrained": "#6a9f58", "fine-tuned": "#e08a2e"}
_OURS_COLOR = "#c0392b"
_HIGHEST = 1.15  # models far above SeasonalNaive would flatten the rest
_MIN_GAP = 0.008  # between two labels, one above the other
_DECADES_PER_LETTER = 0.055  # width of a label


def seconds_chart(found: Comparison) -> bytes:
    """Draw relative MASE against processor time, for the models run here."""

    def draw(axes: "Axes") -> None:
        for name in (SEASONAL_NAIVE, FLAIR, *OURS):
            error, seconds = found.relative(found.here[name], "mase"), found.seconds(name)
            if error is not None and seconds is not None:
                _point(axes, name, max(seconds, 0.1), error)
        for kind in (TRAINED, "zero-shot"):
            _level(axes, found, kind, at=0.02)
        axes.set_xlabel(f"seconds of one core, {len(found.configurations)} configurations")

    return _drawn(found, draw)


def weights_chart(found: Comparison) -> bytes:
    """Draw relative MASE against the number of weights, for models that publish it."""

    def draw(axes: "Axes") -> None:
        places = []
        for kind, color in _COLORS.items():
            models = [one for one in found.rivals if one.kind.startswith(kind) and found.error(one) < _HIGHEST]
            shown = [(found.error(one), one.parameters, one.name) for one in models if one.parameters]
            axes.scatter([x for _, x, _ in shown], [y for y, _, _ in shown], s=22, color=color, label=kind)
            places += shown
        labeled: list[tuple[float, float, float]] = []
        for y, x, name in sorted(places):
            end = x * 10 ** (_DECADES_PER_LETTER * len(name))
            if all(x > its_end or end < its_x or abs(y - its_y) > _MIN_GAP for its_x, its_end, its_y in labeled):
                axes.annotate(name, (x, y), xytext=(4, 2), textcoords="offset points", fontsize=6.5)
                labeled.append((x, end, y))
        for name in OURS:
            model = found.here[name]
            error = found.relative(model, "mase")
            if error is not None and model.parameters:
                _point(axes, name, model.parameters, error)
        for kind in ("statistical", TRAINED):
            _level(axes, found, kind, at=0.3)
        axes.set_xlabel("number of weights (dashed lines: models without weights, or whose number is not published)")
        axes.legend(loc="lower left", frameon=False)

    return _drawn(found, draw)


def _point(axes: "Axes", name: str, x: float, y: float) -> None:
    is_ours = name in OURS
    color, size = (_OURS_COLOR, 130) if is_ours else ("#555555", 30)
    axes.scatter([x], [y], s=size, marker="*" if is_ours else "o", color=color, zorder=3)
    weight = "bold" if is_ours else "normal"
    axes.annotate(
        name, (x, y), xytext=(0, -14), textcoords="offset points", ha="center", color=color, fontweight=weight
    )


def _level(axes: "Axes", found: Comparison, kind: str, *, at: float) -> None:
    """Draw a line at the best model of a kind."""
    best = found.best(kind)[0]
    axes.axhline(found.error(best), color="#999999", linewidth=0.7, linestyle="--", zorder=0)
    text = f"{best.name}, best {kind}"
    axes.annotate(
        text, (at, found.error(best)), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
        fontsize=7, color="#555555",
    )  # fmt: skip


def _drawn(found: Comparison, draw: Callable[["Axes"], None]) -> bytes:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The salt and the missing date make equal results give equal files.
    with mpl.rc_context({"svg.hashsalt": "leapts", "svg.fonttype": "none", "font.size": 8.0}):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        axes = figure.subplots()
        axes.set_xscale("log")
        draw(axes)
        axes.set_ylabel("MASE relative to SeasonalNaive")
        axes.grid(linewidth=0.3)
        axes.margins(x=0.1, y=0.08)
        axes.spines[["top", "right"]].set_visible(False)
        missing = [name for name in OURS if found.relative(found.here[name], "mase") is None]
        if missing:
            axes.set_title(f"{', '.join(missing)}: {NOT_RUN}", loc="left", color=_OURS_COLOR, fontsize=8)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
