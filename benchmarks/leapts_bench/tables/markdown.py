"""Numbers and tables as Markdown."""

from collections.abc import Sequence

from leapts_bench.tables.summary import Figure, Horizon

NOT_RUN = "not run here"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table; every row has as many cells as there are headings."""
    assert all(len(row) == len(headings) for row in rows), "a row has too few or too many cells"
    lines = [list(headings), ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(figure: Figure | None) -> str:
    """Format a mean with three decimals, with its spread over several seeds."""
    if figure is None:
        return NOT_RUN
    return f"{figure.mean:.3f}" + (f" ± {figure.spread:.3f}" if figure.seeds > 1 else "")


def plain(value: Figure | float | None, *, digits: int | None = None) -> str:
    """Format a number with three decimals or a number of significant digits; a dash for None."""
    if value is None:
        return "-"
    number = value.mean if isinstance(value, Figure) else value
    return f"{number:.3f}" if digits is None else f"{number:.{digits}g}"


def percent(share: float) -> str:
    """Format a share as a signed percentage."""
    return f"{100 * share:+.1f} %"


def place(horizon: Horizon) -> str:
    """Format a horizon, or the average over all of them."""
    return str(horizon) if isinstance(horizon, int) else "average"
