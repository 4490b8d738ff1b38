"""Covariates: columns beside the target, known in advance, known up to the forecast, or constant in a series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from leapts.config import ReadOptions
from leapts.data.columns import number_column
from leapts.data.reader import Table, is_text
from leapts.errors import DataError
from leapts.messages import listed, nearest, quoted

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Categories = Mapping[str, tuple[str, ...]]  # of each categorical covariate, sorted

_MAX_MIXED = 0.5  # share of numbers in a column of text from which on it is taken for numbers with a slip


@dataclass(frozen=True, eq=False, kw_only=True)
class Covariates:
    """Covariates of the series of a panel; the known-future ones may reach beyond the end of the target.

    Series point into a table of rows that they share, so that to cut a panel copies nothing. A category is the index of
    its name; NaN is a missing value.
    """

    future: tuple[str, ...]  # names of known-future covariates, which are the first columns
    past: tuple[str, ...]  # names of covariates that are known up to the forecast
    static: tuple[str, ...]
    values: Float64[Tensor, "rows columns"]
    of_series: Float64[Tensor, "series static"]
    categories: Categories
    starts: Int64[Tensor, " series"]  # row of the first value of each series
    ends: Int64[Tensor, " series"]  # row after the last one that is known
    found: bool = False  # whether known-future covariates were found, not named

    @classmethod
    def none(cls, offsets: Int64[Tensor, " offsets"]) -> "Covariates":
        """Make an empty set, to which static covariates can be added."""
        return cls(
            future=(),
            past=(),
            static=(),
            values=torch.empty(int(offsets[-1]), 0, dtype=torch.float64),
            of_series=torch.empty(len(offsets) - 1, 0, dtype=torch.float64),
            categories={},
            starts=offsets[:-1],
            ends=offsets[1:],
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.future + self.past

    def moved(self, steps: Int64[Tensor, " series"]) -> "Covariates":
        """Begin that many steps later in each series."""
        return replace(self, starts=(self.starts + steps).minimum(self.ends))

    def select(self, chosen: Int64[Tensor, " chosen"]) -> "Covariates":
        """Select series by their index."""
        return replace(self, of_series=self.of_series[chosen], starts=self.starts[chosen], ends=self.ends[chosen])

    def compact(self, lengths: Int64[Tensor, " series"]) -> "Covariates":
        """Copy the rows of each series from its first value on, at most `lengths` of them."""
        counts = (self.ends - self.starts).minimum(lengths)
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        index = torch.arange(int(offsets[-1])) + (self.starts - offsets[:-1]).repeat_interleave(counts)
        return replace(self, values=self.values[index], starts=offsets[:-1], ends=offsets[1:])

    def horizon(self, lengths: Int64[Tensor, " series"], h: int) -> Float64[Tensor, "series h future"]:
        """Cut the known-future covariates of the `h` steps after each series; NaN where there are no rows."""
        rows = (self.starts + lengths)[:, None] + torch.arange(h)
        cut = self.values[:, : len(self.future)][rows.clamp(max=max(0, len(self.values) - 1))]
        return cut.masked_fill((rows >= self.ends[:, None])[..., None], torch.nan)

    def with_horizon(self, lengths: Int64[Tensor, " series"], rows: Floats, categories: Categories) -> "Covariates":
        """Replace the rows after each series by `rows`, as [series, h, future]."""
        merged = {name: tuple(sorted({*known, *categories.get(name, ())})) for name, known in self.categories.items()}
        past = self.compact(lengths)
        values = recoded(past.values.numpy(), self.columns, self.categories, merged)
        ahead = np.full((*rows.shape[:2], values.shape[1]), np.nan)
        ahead[..., : rows.shape[2]] = recoded(rows, self.future, categories, merged)
        h, series = rows.shape[1], len(rows)
        counts = (past.ends - past.starts).numpy()
        ends = np.cumsum(counts + h)
        place = np.arange(len(values)) + np.repeat(np.arange(series) * h, counts)
        joined = np.empty((len(values) + series * h, values.shape[1]))
        joined[place] = values
        joined[(ends[:, None] - h + np.arange(h)).reshape(-1)] = ahead.reshape(series * h, -1)
        return replace(
            past,
            values=torch.from_numpy(joined),
            of_series=torch.from_numpy(recoded(self.of_series.numpy(), self.static, self.categories, merged)),
            categories=merged,
            starts=torch.from_numpy(ends - counts - h),
            ends=torch.from_numpy(ends),
        )


@dataclass(frozen=True)
class CovariateRows:
    """Columns of a table that are used as covariates."""

    table: Table
    future: tuple[str, ...]
    past: tuple[str, ...]
    static: tuple[str, ...]
    found: bool

    @property
    def names(self) -> set[str]:
        """Names of all columns."""
        return {*self.future, *self.past, *self.static}

    def read(self, source: Index | None, offsets: Index, positions: Index | None, removed: Index) -> Covariates | None:
        """Read the columns, for rows in the order of `source` that are at `positions` of their series.

        `removed` counts the first steps of each series that its target lacks.
        """
        if not self.names or positions is None:
            return None
        columns = self.future + self.past
        read = {name: read_column(self.table, name) for name in (*columns, *self.static)}
        values = {name: found[0] if source is None else found[0][source] for name, found in read.items()}
        lengths = positions[offsets[1:] - 1] + 1
        ends = np.cumsum(lengths)
        rows = np.full((int(ends[-1]), len(columns)), np.nan)
        place = np.repeat(ends - lengths, np.diff(offsets)) + positions
        for number, name in enumerate(columns):
            rows[place, number] = values[name]
        static = [_static_value(self.table, name, values[name], source, offsets) for name in self.static]
        return Covariates(
            future=self.future,
            past=self.past,
            static=self.static,
            values=torch.from_numpy(rows),
            of_series=torch.from_numpy(np.stack(static, 1) if static else np.empty((len(lengths), 0))),
            categories={name: found[1] for name, found in read.items() if found[1] is not None},
            starts=torch.from_numpy(ends - lengths + removed),
            ends=torch.from_numpy(ends),
            found=self.found,
        )


def known_rows(values: Floats, offsets: Index) -> npt.NDArray[np.bool_]:
    """Mark the rows up to the last known target of each series; all of a series that has none."""
    index = np.arange(len(values))
    last = np.maximum.reduceat(np.where(np.isfinite(values), index, -1), offsets[:-1])
    last = np.where(last < offsets[:-1], offsets[1:], last)
    marked: npt.NDArray[np.bool_] = index <= np.repeat(last, np.diff(offsets))
    return marked


def find_covariates(
    table: Table, options: ReadOptions, unused: Sequence[str], ahead: Index, *, is_wide: bool
) -> CovariateRows:
    """Find the columns that are named as covariates, or that continue in the rows `ahead`, which have no target.

    Raises:
        DataError: When a named column does not exist, or is a column of another kind too.
    """
    lists = {one: getattr(options, one) for one in ("futr_exog_list", "hist_exog_list", "stat_exog_list")}
    is_auto = lists["futr_exog_list"] is None
    future, past, static = (tuple(sorted(set(names or ()))) for names in lists.values())
    for option, names in lists.items():
        if names and is_wide:
            raise DataError(
                f"{table.name}: {option} needs the long layout, one row for each series and timestamp; a wide table "
                "has only columns of series"
            )
        if option == "stat_exog_list" and options.is_fitted:  # they may come from a table of their own, or the fit
            static = tuple(name for name in static if name in unused)
            continue
        for name in names or ():
            require_column(table, name, option, unused)
    repeated = [name for name in (*future, *past, *static) if (*future, *past, *static).count(name) > 1]
    if repeated:
        raise DataError(f"{table.name}: column {quoted(repeated[0])} is in two lists of covariates; keep one of them")
    if is_auto and len(ahead) and not is_wide:
        others = [name for name in unused if name not in (*past, *static)]
        future = tuple(sorted(name for name in others if _continues(table, name, ahead)))
    return CovariateRows(table, future, past, static, found=is_auto)


def _continues(table: Table, name: str, ahead: Index) -> bool:
    """Whether a column has values in most rows without a target, and is one that can be used."""
    data = table.column(name)
    known = len(ahead) - data.take(pa.array(ahead)).null_count
    return 2 * known > len(ahead) and not pa.types.is_temporal(data.type)


def require_column(table: Table, name: str, option: str, unused: Sequence[str]) -> None:
    """Refuse a name that is not one of the unused columns, with the one that was probably meant."""
    if name in unused:
        return
    if name in table.columns:
        raise table.error(name, f"is read already, so it cannot be in {option}; leave it out of that list")
    near = nearest(name, unused)
    hint = f"did you mean {quoted(near)}?" if near else f"correct {option}, or add the column"
    raise DataError(
        f"{table.name} has no column {quoted(name)}, which {option} names, only {listed(table.columns)}; {hint}"
    )


def read_column(table: Table, name: str) -> tuple[Floats, tuple[str, ...] | None]:
    """Read a column as numbers, or as codes of categories with their sorted names."""
    data = table.column(name)
    kind = data.type.value_type if pa.types.is_dictionary(data.type) else data.type
    if pa.types.is_boolean(kind):
        return np.asarray(data.cast(pa.int8()).cast(pa.float64()).to_numpy(zero_copy_only=False)), None
    if not is_text(kind):
        return number_column(table, name), None
    if pa.types.is_dictionary(data.type):
        data = data.cast(kind)
    encoded = pc.utf8_trim_whitespace(data).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    names = [str(one) for one in encoded.dictionary.to_pylist()]
    if names and sum(map(_is_number, names)) >= _MAX_MIXED * len(names):
        return number_column(table, name), None  # which refuses the first text with its place
    order = sorted(range(len(names)), key=names.__getitem__)
    codes = np.full(len(names) + 1, np.nan)
    codes[order] = np.arange(len(names))
    return codes[encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)], tuple(sorted(names))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _static_value(table: Table, name: str, values: Floats, source: Index | None, offsets: Index) -> Floats:
    """Take the value that a static covariate has in all rows of a series."""
    first = np.repeat(values[offsets[:-1]], np.diff(offsets))
    differs = np.flatnonzero((values != first) & ~(np.isnan(values) & np.isnan(first)))
    if len(differs):
        row = int(differs[0]) if source is None else int(source[differs[0]])
        raise table.error(
            name, f"changes within a series at {table.place(row)}; name it in futr_exog_list or hist_exog_list instead"
        )
    return values[offsets[:-1]]


def recoded(values: Floats, names: Sequence[str], old: Categories, new: Mapping[str, Sequence[str]]) -> Floats:
    """Change the codes of categories to those of other lists of categories; NaN where a category is missing there."""
    values = values.copy()
    for number, name in enumerate(names):
        if name in old and old[name] != new.get(name):
            place = {one: float(code) for code, one in enumerate(new.get(name, ()))}
            codes = np.array([*(place.get(one, np.nan) for one in old[name]), np.nan])
            values[..., number] = codes[np.nan_to_num(values[..., number], nan=len(old[name])).astype(np.int64)]
    return values
