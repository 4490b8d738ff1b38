"""`leapts analyse`.

Examples:
  leapts analyse model/ sales.csv
  leapts analyse model/ dataset:Scenario1 --groups "^[ABC]" --plot analysis.png
"""

import io
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import say, say_files, show_table, write_json
from leapts.errors import ConfigError
from leapts.messages import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leapts.forecasting.analysis import Embedding, VolatilityBin

_GROUPS = (
    "Regular expression: its match in the name of a series is the group of the series. The separation of the states "
    "into groups is measured."
)


@options.shared_options
def analyse(
    model: options.Model,
    data: options.Data,
    bins: Annotated[int, typer.Option(min=1, help="Number of bins of volatility.")] = 4,
    groups: Annotated[str | None, typer.Option(metavar="PATTERN", help=_GROUPS)] = None,
    windows: Annotated[int, typer.Option(min=1, help="Largest number of windows.")] = 20_000,
    plot: Annotated[Path | None, typer.Option(help="PNG, SVG or PDF file for a figure.")] = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Show how schedules depend on volatility: contributions to the state, scales, number of leaps."""
    from leapts.forecasting.analysis import by_volatility, embed, overall, representations, trace_windows

    options.require_output(plot, (".png", ".svg", ".pdf"), model=model)
    try:
        pattern = None if groups is None else re.compile(groups)
    except re.error as error:
        raise ConfigError(f"--groups {quoted(groups)} is not a regular expression: {error}") from None
    forecaster, panel = options.load(model, data, threads)
    traced = trace_windows(forecaster, panel, max_rows=windows)
    found, total = by_volatility(traced, bins), overall(traced)
    embedding = None
    if pattern is not None:
        vectors, names = representations(forecaster, panel, max_rows=min(windows, 2000))
        embedding = embed(vectors, [_group(pattern, name) for name in names])
    if plot is not None:
        _draw(found, embedding, plot)
    separation = None if embedding is None else embedding.separation
    if json:
        measured = {"bins": [asdict(one) for one in found], "overall": asdict(total), "separation": separation}
        write_json({**measured, "plot": plot})
        return
    rows = []
    for name, one in [*enumerate(found, start=1), ("all", total)]:
        shares = [f"{share:.3f}" for share in (one.control, one.temporal, *one.scales.values())]
        rows.append([str(name), f"{one.low:.3g} to {one.high:.3g}", one.windows, *shares, f"{one.leaps:.2f}"])
    show_table(["bin", "volatility", "windows", "control", "temporal", "short", "mid", "long", "leaps"], rows)
    if separation is not None:
        say(f"separation of the groups (silhouette of the states): {separation:.3f}")
    say_files(figure=plot)


def _group(pattern: re.Pattern[str], name: str) -> str:
    match = pattern.search(name)
    if match is None:
        raise ConfigError(f"--groups {quoted(pattern.pattern)} matches nothing in the series {quoted(name)}")
    return match.group()


def _draw(bins: "Sequence[VolatilityBin]", embedding: "Embedding | None", target: Path) -> None:
    """Draw all analyses side by side into one file."""
    from leapts.files import write_file
    from leapts.report import plots

    figure = plots.new_figure(panels=3 if embedding is None else 4)
    drawings = (plots.plot_contributions, plots.plot_scales, plots.plot_intensity)
    for draw, axes in zip(drawings, figure.axes, strict=False):
        draw(bins, ax=axes)
    if embedding is not None:
        plots.plot_embedding(embedding, ax=figure.axes[3])
    content = io.BytesIO()
    figure.savefig(content, format=target.suffix[1:], dpi=150)
    write_file(target, content.getvalue())
