"""Covariates from tables of their own: future rows of a forecast, and static covariates of each series."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from leapts.data.columns import name_column, time_column
from leapts.data.covariates import Covariates, Floats, read_column, require_column
from leapts.data.panel import Panel
from leapts.data.reader import Table, read_table
from leapts.errors import DataError
from leapts.messages import counted, listed, quoted, timestamp_text


def with_future_rows(panel: Panel, source: str | Path | object, h: int) -> Panel:
    """Read the known-future covariates of the `h` steps after each series from a table of their own.

    Further rows and columns are not used.

    Raises:
        DataError: When a row is missing, with its series and timestamp, or a column.
    """
    covariates, style = panel.covariates, panel.style
    if covariates is None or not covariates.future:
        raise DataError("there are no known-future covariates to give rows for; fit with futr_exog_list=[...] first")
    table = read_table(source, id_col=style.id_col)
    series = _series_of_rows(panel, table)
    require_column(table, style.time_col, "time_col", table.columns)
    time = time_column(table, style.time_col)
    for name in covariates.future:
        require_column(table, name, "futr_exog_list", table.columns)
    wanted = panel.future_timestamps(h)
    if time.timestamps.dtype.kind != wanted.dtype.kind or (time.timezone is None) != (panel.timezone is None):
        raise table.error(style.time_col, "holds other timestamps than the data; write both in one way")
    rows, place = _matched(series, time.timestamps, wanted)
    missing = np.ones(wanted.shape, dtype=bool)
    missing.reshape(-1)[place] = False
    if missing.any():
        one, step = (int(axis[0]) for axis in np.nonzero(missing))
        raise DataError(
            f"{table.name} has no row for series {quoted(panel.series[one])} at "
            f"{timestamp_text(wanted[one, step], panel.timezone)} ({counted(int(missing.sum()), 'row')} missing in "
            f"all); give the {h} rows after the end of every series"
        )
    values, categories = np.full((wanted.size, len(covariates.future)), np.nan), {}
    for number, name in enumerate(covariates.future):
        column, names = read_column(table, name)
        values[place, number] = column[rows]
        if (names is None) != (name not in covariates.categories):
            raise table.error(name, f"holds {'numbers' if names is None else 'text'}, unlike in the data; convert it")
        if names is not None:
            categories[name] = names
    known = covariates.with_horizon(panel.lengths, values.reshape(*wanted.shape, -1), categories)
    return replace(panel, covariates=known)


def with_static(panel: Panel, source: str | Path | object, names: Sequence[str] | None) -> Panel:
    """Read static covariates from a table with one row for each series; by default all of its columns.

    Raises:
        DataError: When a series has no row, or several, or a column is missing.
    """
    id_col = panel.style.id_col
    table = read_table(source, id_col=id_col)
    columns = [name for name in table.columns if name != id_col]
    for name in names or ():
        require_column(table, name, "stat_exog_list", columns)
    chosen = tuple(sorted(names or columns))
    series = _series_of_rows(panel, table)
    known = np.flatnonzero(series >= 0)
    counts = np.bincount(series[known], minlength=len(panel))
    if (counts != 1).any():
        one = int(np.argmax(counts != 1))
        problem = "no row" if not counts[one] else f"{counts[one]} rows"
        raise DataError(f"{table.name} has {problem} for series {quoted(panel.series[one])}; give one for each series")
    read = {name: read_column(table, name) for name in chosen}
    values: Floats = np.empty((len(panel), len(chosen)))
    for number, (column, _) in enumerate(read.values()):
        values[series[known], number] = column[known]
    before = panel.covariates or Covariates.none(panel.offsets)
    categories = {name: found for name, (_, found) in read.items() if found is not None}
    both = sorted({*before.columns} & {*chosen})
    if both:
        raise table.error(both[0], "is a covariate of the data too; rename one of them")
    return replace(
        panel,
        covariates=replace(
            before,
            static=chosen,
            of_series=torch.from_numpy(values),
            categories={**before.categories, **categories},
        ),
    )


def with_static_of(panel: Panel, known: Panel, places: Int64[Tensor, " series"]) -> Panel:
    """Take the static covariates that a panel lacks from another one, where `places` are its series there."""
    own, other = panel.covariates or Covariates.none(panel.offsets), known.covariates
    if other is None or own.static or not other.static or bool((places < 0).any()):
        return panel
    static = {name: other.categories[name] for name in other.static if name in other.categories}
    categories = {**own.categories, **static}
    return replace(
        panel,
        covariates=replace(own, static=other.static, of_series=other.of_series[places], categories=categories),
    )


def _series_of_rows(panel: Panel, table: Table) -> npt.NDArray[np.int64]:
    """Index of the series of each row; -1 for rows of other series."""
    id_col = panel.style.id_col
    if id_col not in table.columns:
        if len(panel) > 1:
            raise DataError(f"{table.name} has no column {quoted(id_col)}, only {listed(table.columns)}; add it")
        return np.zeros(len(table), dtype=np.int64)
    names, codes = name_column(table, id_col)
    place = {str(name): number for number, name in enumerate(panel.series)}
    return np.array([place.get(str(name), -1) for name in names], dtype=np.int64)[codes]


def _matched(
    series: npt.NDArray[np.int64], timestamps: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Find the rows that are among the wanted timestamps of their series, and their places in that matrix."""
    distinct, ranks = np.unique(wanted, return_inverse=True)
    ranks = ranks.reshape(wanted.shape)
    keys = (ranks + np.arange(len(wanted))[:, None] * len(distinct)).reshape(-1)
    rank = np.searchsorted(distinct, timestamps)
    rows = np.flatnonzero((series >= 0) & (rank < len(distinct)))
    rows = rows[distinct[rank[rows]] == timestamps[rows]]
    key = series[rows] * len(distinct) + rank[rows]
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    found = keys[place] == key
    return rows[found], place[found]
