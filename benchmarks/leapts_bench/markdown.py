"""Figures and tables as Markdown."""

from collections.abc import Sequence

from leapts_bench.summary import Figure, Horizon

NOT_RUN = "not run here"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; every row has as many cells as there are headings."""
    assert all(len(row) == len(headings) for row in rows), "a row has too few or too many cells"
    lines = [list(headings), ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(figure: Figure | None) -> str:
    """A figure to three decimals, with its spread where there are several seeds."""
    if figure is None:
        return NOT_RUN
    return f"{figure.mean:.3f}" + (f" ± {figure.spread:.3f}" if figure.seeds > 1 else "")


def plain(value: Figure | float | None, *, digits: int | None = None) -> str:
    """A number to three decimals, or to so many significant digits; a dash where there is none."""
    if value is None:
        return "-"
    number = value.mean if isinstance(value, Figure) else value
    return f"{number:.3f}" if digits is None else f"{number:.{digits}g}"


def percent(share: float) -> str:
    """A share as a signed percentage."""
    return f"{100 * share:+.1f} %"


def place(horizon: Horizon) -> str:
    """A horizon, or the word for all of them."""
    return str(horizon) if isinstance(horizon, int) else "average"
