from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import ReadOptions
from leapts.data.panel import Panel
from leapts.data.validation import read_panel
from leapts.errors import DataError

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=6)
BORDER = st.integers(-15, 15)


def ragged(lengths: list[int]) -> Panel:
    """Make series s0, s1 ... whose values name series and step: 1002 is step 2 of s1."""
    frame = pd.DataFrame(
        [
            (f"s{series}", step, 1000.0 * series + step)
            for series, length in enumerate(lengths)
            for step in range(length)
        ],
        columns=["unique_id", "ds", "y"],
    )
    return read_panel(frame, ReadOptions(freq=1))


def lists(panel: Panel) -> list[list[float]]:
    return [part.tolist() for part in panel.values.tensor_split(panel.offsets[1:-1])]


@given(LENGTHS, BORDER, st.one_of(st.none(), BORDER))
def test_slices_equal_python_slices_of_each_series(lengths: list[int], start: int, stop: int | None) -> None:
    panel = ragged(lengths)
    part = panel.slice(start, stop)
    assert lists(part) == [series[start:stop] for series in lists(panel)]
    for first, series in zip(part.first, lists(part), strict=True):
        assert not series or first == series[0] % 1000


@given(LENGTHS, st.integers(0, 15))
def test_head_and_tail_together_are_the_panel(lengths: list[int], steps: int) -> None:
    panel = ragged(lengths)
    head, tail = lists(panel.head(-steps) if steps else panel), lists(panel.tail(steps))
    assert [a + b for a, b in zip(head, tail, strict=True)] == lists(panel)
    assert [len(series) for series in tail] == [min(length, steps) for length in lengths]


def test_timestamps_follow_the_first_one_in_steps_of_the_frequency() -> None:
    panel = ragged([3, 1, 2])
    assert panel.timestamps().tolist() == [0, 1, 2, 0, 0, 1]
    assert panel.last().tolist() == [2, 0, 1]
    assert panel.future_timestamps(2).tolist() == [[3, 4], [1, 2], [2, 3]]


def at_a_skipped_time(freq: str, periods: int) -> Panel:
    """Two series at half past two, a time of day that New York's clocks skip on a Sunday in March."""
    walls = pd.date_range("2023-01-01 02:30", periods=periods, freq=freq)
    timestamps = walls.tz_localize("America/New_York", nonexistent="shift_forward")
    frame = pd.DataFrame({"ds": timestamps, "a": np.arange(periods) + 0.0, "b": np.arange(periods) + 1.0})
    return read_panel(frame, ReadOptions(freq=freq))


@pytest.mark.parametrize(("freq", "periods"), [("D", 90), ("7D", 15), ("364D", 8), ("W-SUN", 15), ("52W-SUN", 8)])
def test_cutting_aligned_series_keeps_their_timestamps(freq: str, periods: int) -> None:
    whole = at_a_skipped_time(freq, periods)
    timestamps = whole.timestamps().reshape(2, -1)
    ahead = whole.future_timestamps(30)
    assert whole.starts.tolist() == timestamps[:, 0].tolist()
    for start in range(1, periods - 1):
        part = whole.slice(start)
        assert part.is_aligned
        assert part.starts.tolist() == timestamps[:, start].tolist()
        np.testing.assert_array_equal(part.timestamps().reshape(2, -1), timestamps[:, start:])
        np.testing.assert_array_equal(part.last(back=1), timestamps[:, -2])
        np.testing.assert_array_equal(part.select(["b", "a"]).tail(2).head(1).timestamps(), timestamps[:, -2])
        np.testing.assert_array_equal(part.future_timestamps(30), ahead)


def test_cutting_ragged_series_keeps_their_timestamps() -> None:
    timestamps = at_a_skipped_time("D", 480).timestamps()[:480]
    days = pd.DatetimeIndex(timestamps).tz_localize("UTC").tz_convert("America/New_York")
    parts = {"late": days[100:300], "long": days, "short": days[60:75]}  # the 12th of March is the day 70
    frame = pd.concat([pd.DataFrame({"unique_id": name, "ds": own, "y": 1.0}) for name, own in parts.items()])
    panel = read_panel(frame)
    part = panel.tail(410)
    wanted = [own[-410:] for own in parts.values()]
    np.testing.assert_array_equal(part.starts, timestamps[[100, 70, 60]])
    assert part.timestamps().astype(int).tolist() == [
        timestamp.timestamp() * 10**6 for own in wanted for timestamp in own
    ]
    np.testing.assert_array_equal(part.future_timestamps(7), panel.future_timestamps(7))


def test_selected_series_are_in_the_given_order() -> None:
    panel = ragged([3, 1, 2]).select(["s2", "s0"])
    assert panel.series == ("s2", "s0")
    assert lists(panel) == [[2000, 2001], [0, 1, 2]]


def test_an_unknown_series_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DataError, match=r"there is no series 'S2'; did you mean 's2'\?"):
        ragged([3, 1, 2]).select(["S2"])
    with pytest.raises(DataError, match="there is no series 'xyz'; there are 's0', 's1'"):
        ragged([3, 1]).select(["xyz"])


def test_the_matrix_is_a_view() -> None:
    panel = ragged([4, 4])
    matrix = panel.matrix()
    assert matrix.shape == (2, 4)
    assert matrix.data_ptr() == panel.values.data_ptr()


def test_ragged_series_form_no_matrix() -> None:
    with pytest.raises(DataError, match=r"the 2 series differ .*\(from 3 to 4\), so they form no matrix"):
        ragged([4, 3]).matrix()


def test_series_with_different_starts_are_not_aligned() -> None:
    frame = pd.DataFrame({"unique_id": ["a", "a", "b", "b"], "ds": [1, 2, 2, 3], "y": [1.0, 2, 3, 4]})
    assert not read_panel(frame).is_aligned


def test_a_panel_from_a_matrix_shares_its_memory() -> None:
    values = torch.arange(6, dtype=torch.float64).view(2, 3)
    panel = Panel.from_matrix(values, series=("x", "y"))
    assert panel.is_aligned
    assert panel.values.data_ptr() == values.data_ptr()
    np.testing.assert_array_equal(panel.last(), [3, 3])


def test_large_values_keep_their_noise() -> None:
    values = 1e9 + np.array([0.001, 0.002, 0.003])
    panel = read_panel(pd.DataFrame({"ds": [1, 2, 3], "y": values}))
    np.testing.assert_array_equal(panel.values.numpy(), values)


def test_a_hundred_thousand_series_need_no_loop_over_series() -> None:
    """Compare the time of one series with that of very many with equally many rows, as a ratio."""
    from time import perf_counter

    rows = 300_000
    values = np.arange(rows, dtype=float)

    def seconds(series: int) -> float:
        step = rows // series
        names = np.repeat(np.arange(series), step)
        frame = pd.DataFrame({"unique_id": names, "ds": np.tile(np.arange(step), series), "y": values})
        best = float("inf")
        for _ in range(3):
            start = perf_counter()
            assert len(read_panel(frame, ReadOptions(freq=1))) == series
            best = min(best, perf_counter() - start)
        return best

    # A loop over series costs microseconds for each, a hundred times the work of a row.
    assert seconds(100_000) < 20 * seconds(10)


def test_the_repr_of_a_panel_shows_series_steps_and_frequency() -> None:
    assert repr(ragged([3, 5])) == "Panel(2 series of 3..5 steps, freq=1)"


@given(LENGTHS, BORDER, st.one_of(st.none(), BORDER), st.data())
def test_parts_of_an_interpolated_panel_have_no_lookahead(
    lengths: list[int], start: int, stop: int | None, data: st.DataObject
) -> None:
    panel = replace(ragged(lengths), forward_filled=-ragged(lengths).values)
    names = data.draw(st.lists(st.sampled_from(panel.series), unique=True))
    for part in (panel.slice(start, stop), panel.tail(abs(start)), panel.select(names)):
        assert part.forward_filled is not None
        assert torch.equal(part.forward_filled, -part.values)
        assert torch.equal(part.without_lookahead().values, part.forward_filled)
        assert part.without_lookahead().forward_filled is None
