"""Results printed in the paper."""

import csv
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

FILE = Path(__file__).parent / "published.csv"

OURS = "LeapTS"
AVERAGE: Literal["AVG"] = "AVG"


class Rival(NamedTuple):
    """A model of the paper and its error."""

    model: str
    value: float


@cache
def _figures() -> dict[tuple[str, str, str, str], dict[str, float]]:
    """Read the errors of all models, by table, data set, horizon and metric."""
    figures: dict[tuple[str, str, str, str], dict[str, float]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            place = (row["table"], row["dataset"], row["horizon"], row["metric"])
            figures.setdefault(place, {})[row["model"]] = float(row["value"])
    return figures


def published(table: str, dataset: str, horizon: int | str, metric: str, model: str = OURS) -> float | None:
    """Look up a model's error; None where the paper has none."""
    return _figures().get((table, dataset, str(horizon), metric), {}).get(model)


def best_other(table: str, dataset: str, horizon: int | str, metric: str) -> Rival | None:
    """Find the best baseline of the paper; None where it has none."""
    others = _figures().get((table, dataset, str(horizon), metric), {})
    rivals = [Rival(model, value) for model, value in others.items() if model != OURS]
    return min(rivals, key=lambda rival: rival.value, default=None)
