"""Timestamps of a forecast have the format of the training data; impossible ones are refused."""

import numpy as np
import pytest
import torch

from leapts.data.panel import FrameStyle, Panel
from leapts.errors import DataError
from leapts.server.timestamps import Timestamp, future_texts

STEPS = np.array([1])
DATES = np.array(["2024-01-01"], dtype="datetime64[us]")


def _fitted(freq: str | int, *, timezone: str | None = None, time_type: str = "timestamp[us]") -> Panel:
    return Panel(
        values=torch.zeros(1, dtype=torch.float64),
        offsets=torch.tensor([0, 1]),
        series=("a",),
        first=STEPS if isinstance(freq, int) else DATES,
        freq=freq,
        timezone=timezone,
        style=FrameStyle(time_type=time_type),
    )


def test_step_numbers_continue_by_the_step() -> None:
    assert future_texts(7, _fitted(2), 3) == [9, 11, 13]
    assert future_texts(-1, _fitted(1), 2) == [0, 1]


@pytest.mark.parametrize(
    ("freq", "time_type", "last", "expected"),
    [
        ("D", "date32[day]", "2024-02-28", ["2024-02-29", "2024-03-01"]),
        ("D", "timestamp[us]", "2024-02-28", ["2024-02-29T00:00:00", "2024-03-01T00:00:00"]),
        ("h", "timestamp[us]", "2024-02-28T22:30:00", ["2024-02-28T23:30:00", "2024-02-29T00:30:00"]),
        ("h", "timestamp[us]", "2024-01-01T00:00:00.5", ["2024-01-01T01:00:00.500000", "2024-01-01T02:00:00.500000"]),
        ("500ms", "timestamp[us]", "2024-01-01", ["2024-01-01T00:00:00.500000", "2024-01-01T00:00:01.000000"]),
    ],
)
def test_timestamps_have_the_precision_of_the_data(
    freq: str, time_type: str, last: str, expected: list[Timestamp]
) -> None:
    assert future_texts(last, _fitted(freq, time_type=time_type), 2) == expected


@pytest.mark.parametrize("last", ["2024-10-26T12:00:00", "2024-10-26T12:00:00+02:00", "2024-10-26T10:00:00Z"])
def test_the_timezone_is_kept_for_every_spelling_of_the_last_timestamp(last: str) -> None:
    expected = ["2024-10-27T12:00:00+01:00", "2024-10-28T12:00:00+01:00"]
    assert future_texts(last, _fitted("D", timezone="Europe/Paris"), 2) == expected


def test_forecasts_after_year_9999_are_refused() -> None:
    assert future_texts("9999-12-28", _fitted("D"), 2) == ["9999-12-29T00:00:00", "9999-12-30T00:00:00"]
    for last in ("9999-12-29", "9999-12-31"):
        with pytest.raises(DataError, match=r"2 steps after '?9999-12-[0-9]+"):
            future_texts(last, _fitted("D"), 2)


@pytest.mark.parametrize(
    ("last", "freq", "words"),
    [
        (7, "D", "is 7, and the model was fitted on a timestamp; write it as 2024-01-31"),
        ("2024-01-01", 1, "is '2024-01-01', and the model was fitted on a step number; give a whole number"),
        ("soon", "D", "is 'soon'; write it as 2024-01-31 or"),
        ("2024-01-01T00:00:00Z", "D", "no timezone; leave the timezone out"),
    ],
)
def test_a_timestamp_of_another_kind_is_refused(last: Timestamp, freq: str | int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        future_texts(last, _fitted(freq), 1)
