"""Metamorphic relations: changes of the data with their effect on the forecast."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Frame = pd.DataFrame
KEYS = ["unique_id", "ds"]
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Auckland")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Changed data, and the expected effect on the forecast.

    Attributes:
        frame: The data.
        given: The same data in the layout passed to the model.
        expect: Maps the original forecast to the expected one.
        exactly: Whether the forecast must be equal bit for bit.
        columns: The columns of the forecast that the relation is about.
        further: New series, with any forecast.
    """

    frame: Frame
    given: Frame
    expect: Callable[[Frame], Frame]
    exactly: bool = False
    columns: tuple[str, ...] = ("LeapTS", "LeapTS-lo-50", "LeapTS-hi-50")
    further: tuple[str, ...] = ()


Law = Callable[[Frame, str, np.random.Generator], Change]


def _shuffled(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    rows = frame.iloc[rng.permutation(len(frame))]
    return Change(frame=frame, given=rows, expect=_as_it_was, exactly=True)


def _turned(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    names = rng.permutation(frame["unique_id"].unique())
    turned = pd.concat([frame[frame["unique_id"] == name] for name in names])
    return Change(frame=frame, given=turned, expect=_as_it_was, exactly=True)


def _widened(frame: Frame, freq: str, rng: np.random.Generator) -> Change:
    """Use one column for each series, in any order, if they share their timestamps."""
    wide = frame.pivot(index="ds", columns="unique_id", values="y")
    if wide.isna().any(axis=None):
        return _turned(frame, freq, rng)
    names = rng.permutation(frame["unique_id"].unique())
    return Change(frame=frame, given=wide[names].reset_index().rename_axis(columns=None), expect=_as_it_was)


def _renamed(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    """Rename series; intervals depend on the name, so the relation is about the forecast only."""
    names = frame["unique_id"].unique()
    others = dict(zip(names, rng.choice([f"new {number}" for number in range(20)], len(names), False), strict=True))
    return _same(frame, lambda data: data.assign(unique_id=data["unique_id"].map(others)), ("LeapTS",))


def _renamed_in_order(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    """Rename series without changing their sort order."""
    names = sorted(frame["unique_id"].unique(), key=lambda name: (name[0], int(name[1:] or 0)))
    numbers = np.sort(rng.choice(2000, len(names), replace=False))
    others = {name: f"series {number}" for name, number in zip(names, numbers, strict=True)}
    return _same(frame, lambda data: data.assign(unique_id=data["unique_id"].map(others)), exactly=True)


def _with_further(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    some = frame[frame["unique_id"] == rng.choice(frame["unique_id"].unique())]
    further = tuple(
        f"{letter}{number}" for number, letter in enumerate(rng.permutation(list("Am~"))[: rng.integers(1, 4)])
    )
    parts = [some.assign(unique_id=name, y=rng.normal(size=len(some)) * 10 ** rng.uniform(-9, 9)) for name in further]
    joined = pd.concat([*parts, frame])
    return Change(frame=frame, given=joined, expect=_as_it_was, further=further)


def _with_fewer(frame: Frame, freq: str, rng: np.random.Generator) -> Change:
    names = frame["unique_id"].unique()
    if len(names) == 1:
        return _shuffled(frame, freq, rng)
    kept = rng.permutation(names)[: rng.integers(1, len(names))]
    return _same(frame, lambda data: data[data["unique_id"].isin(kept)])


def _shifted(frame: Frame, freq: str, rng: np.random.Generator) -> Change:
    by = int(rng.integers(-400, 5000))
    steps: Any = by if freq == "steps" else pd.tseries.frequencies.to_offset(freq) * by

    def move(data: Frame) -> Frame:
        return data.assign(ds=data["ds"] + steps if freq == "steps" else pd.DatetimeIndex(data["ds"]) + steps)

    return _same(frame, move, exactly=True)


def _in_zone(frame: Frame, freq: str, rng: np.random.Generator) -> Change:
    """Change the timezone of hourly data; days and months start in local time."""
    zone = str(rng.choice(ZONES))
    if freq == "steps":
        return _shuffled(frame, freq, rng)

    def move(data: Frame) -> Frame:
        stamps = data["ds"].dt
        return data.assign(
            ds=stamps.tz_localize("UTC").dt.tz_convert(zone) if freq == "h" else stamps.tz_localize(zone)
        )

    return _same(frame, move, exactly=True)


def _scaled(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    """Apply a factor and an offset to each series; a known series keeps the width of its intervals."""
    return _same(frame, _units(frame, rng), ("LeapTS",))


def _scaled_before_the_fit(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    return _same(frame, _units(frame, rng))


def _doubled(frame: Frame, freq: str, rng: np.random.Generator) -> Change:  # noqa: ARG001
    factor = 2.0 ** int(rng.integers(-900, 80))
    return _same(
        frame, lambda data: data.assign(**{name: data[name] * factor for name in data.columns[2:]}), exactly=True
    )


def _units(frame: Frame, rng: np.random.Generator) -> Callable[[Frame], Frame]:
    """Change the unit of every series."""
    factors = {name: 10 ** rng.uniform(-0.5, 6) for name in frame["unique_id"].unique()}
    offsets = {name: factor * rng.normal() * 10 ** rng.uniform(0, 6) for name, factor in factors.items()}

    def change(data: Frame) -> Frame:
        factor, offset = data["unique_id"].map(factors), data["unique_id"].map(offsets)
        return data.assign(**{name: data[name] * factor + offset for name in data.columns[2:]})

    return change


def _same(
    frame: Frame,
    change: Callable[[Frame], Frame],
    columns: tuple[str, ...] = ("LeapTS", "LeapTS-lo-50", "LeapTS-hi-50"),
    *,
    exactly: bool = False,
) -> Change:
    """Apply the change of the data to the forecast."""
    changed = change(frame)
    return Change(frame=changed, given=changed, expect=change, exactly=exactly, columns=columns)


def _as_it_was(forecast: Frame) -> Frame:
    return forecast


PREDICT: dict[str, Law] = {
    "rows shuffled: same bits": _shuffled,
    "series reordered: same bits": _turned,
    "wide format: equal forecast": _widened,
    "series renamed: equal forecast under the new names": _renamed,
    "series added: equal forecast for the others": _with_further,
    "series removed: equal forecast for the rest": _with_fewer,
    "timestamps shifted: same bits, shifted": _shifted,
    "another timezone: same bits, in that timezone": _in_zone,
    "values scaled and offset: forecast scaled and offset": _scaled,
}
APART_ALONE = {name for name, law in PREDICT.items() if law in (_renamed, _with_further, _with_fewer)}
FIT: dict[str, Law] = {
    "fit, rows shuffled: same bits": _shuffled,
    "fit, series renamed in the same order: same bits": _renamed_in_order,
    "fit, timestamps shifted: same bits, shifted": _shifted,
    "fit, another timezone: same bits, in that timezone": _in_zone,
    "fit, values scaled by a power of two: same bits, scaled": _doubled,
    "fit, values scaled and offset: forecast scaled and offset": _scaled_before_the_fit,
}
