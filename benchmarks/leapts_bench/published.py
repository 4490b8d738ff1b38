"""The figures the paper prints, as data."""

import csv
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

FILE = Path(__file__).parent / "published.csv"

OURS = "LeapTS"
AVERAGE: Literal["AVG"] = "AVG"


class Rival(NamedTuple):
    """A model of the paper and its figure."""

    model: str
    value: float


@cache
def _figures() -> dict[tuple[str, str, str, str], dict[str, float]]:
    """By table, set, horizon and metric: each model's figure."""
    figures: dict[tuple[str, str, str, str], dict[str, float]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            place = (row["table"], row["dataset"], row["horizon"], row["metric"])
            figures.setdefault(place, {})[row["model"]] = float(row["value"])
    return figures


def published(table: str, dataset: str, horizon: int | str, metric: str, model: str = OURS) -> float | None:
    """A model's figure, where the paper has one."""
    return _figures().get((table, dataset, str(horizon), metric), {}).get(model)


def best_other(table: str, dataset: str, horizon: int | str, metric: str) -> Rival | None:
    """The best of the paper's other models, where it has any."""
    others = _figures().get((table, dataset, str(horizon), metric), {})
    rivals = [Rival(model, value) for model, value in others.items() if model != OURS]
    return min(rivals, key=lambda rival: rival.value, default=None)
