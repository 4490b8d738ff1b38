import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from leapts.data.windows import AlignedWindows, StridedWindows, Windows
from leapts.errors import DataError


def flat(lengths: list[int]) -> tuple[Tensor, Tensor]:
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return torch.arange(int(offsets[-1]), dtype=torch.float32), offsets


def naive(
    lengths: list[int], input_size: int, horizon: int, step: int, pad: bool, latest: int | None
) -> list[tuple[list[float], list[float]]]:
    """Cut the windows by a loop over series and starts."""
    values, offsets = flat(lengths)
    found = []
    for index, length in enumerate(lengths):
        series = values[offsets[index] : offsets[index + 1]].tolist()
        if pad and horizon < length < input_size + horizon:
            series = [series[0]] * (input_size + horizon - length) + series
        starts = range(0, len(series) - input_size - horizon + 1, step)
        for start in starts if latest is None else starts[-latest:]:
            border = start + input_size
            found.append((series[start:border], series[border : border + horizon]))
    return found


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=7),
    st.integers(1, 6),
    st.integers(0, 5),
    st.integers(1, 4),
    st.booleans(),
    st.none() | st.integers(1, 5),
)
def test_ragged_windows_equal_a_naive_loop(
    lengths: list[int], input_size: int, horizon: int, step: int, pad: bool, latest: int | None
) -> None:
    expected = naive(lengths, input_size, horizon, step, pad, latest)
    values, offsets = flat(lengths)
    if not expected:
        with pytest.raises(DataError, match="no series is long enough"):
            Windows(values, offsets, input_size, horizon, step=step, pad_short=pad, latest=latest)
        return
    windows = Windows(values, offsets, input_size, horizon, step=step, pad_short=pad, latest=latest)
    assert len(windows) == len(expected)
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(0))
    batch = windows.gather(order)
    history, future = batch.history, batch.target
    assert history.shape == (len(windows), 1, input_size)
    assert future.shape == (len(windows), 1, horizon)
    got = [(h.tolist(), f.tolist()) for h, f in zip(history[:, 0], future[:, 0], strict=True)]
    assert got == [expected[index] for index in order]


@given(st.lists(st.integers(1, 15), min_size=1, max_size=5), st.integers(1, 8), st.integers(1, 4), st.integers(1, 9))
def test_masked_windows_are_cut_from_series_with_unknown_steps_before_them(
    lengths: list[int], input_size: int, horizon: int, min_history: int
) -> None:
    values, offsets = flat(lengths)
    expected = []
    for series in values.tensor_split(offsets[1:-1]):
        padded = torch.cat([torch.full((input_size,), torch.nan), series])
        starts = range(min(min_history, input_size), len(series) - horizon + 1)
        expected += [padded[start : start + input_size + horizon] for start in starts]
    if not expected:
        with pytest.raises(DataError, match="no series is long enough"):
            Windows(values, offsets, input_size, horizon, min_history=min_history)
        return
    windows = Windows(values, offsets, input_size, horizon, min_history=min_history)
    batch = windows.gather(torch.arange(len(windows)))
    torch.testing.assert_close(
        torch.cat([batch.history, batch.target], -1)[:, 0], torch.stack(expected), equal_nan=True
    )


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 5), st.integers(0, 10))
def test_aligned_windows_equal_slices(series: int, input_size: int, horizon: int, spare: int) -> None:
    length = input_size + horizon + spare
    matrix = torch.arange(series * length, dtype=torch.float32).view(series, length)
    windows = AlignedWindows(matrix, input_size, horizon)
    assert len(windows) == spare + 1
    batch = windows.gather(torch.arange(len(windows)))
    history, future = batch.history, batch.target
    for start in range(len(windows)):
        assert torch.equal(history[start], matrix[:, start : start + input_size])
        assert torch.equal(future[start], matrix[:, start + input_size : start + input_size + horizon])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5), st.integers(1, 30), st.booleans())
def test_every_nth_counts_on_from_series_to_series(lengths: list[int], step: int, aligned: bool) -> None:
    if aligned:
        windows: Windows | AlignedWindows = AlignedWindows(torch.arange(3 * 23.0).view(3, 23), 2, 1)
    else:
        windows = Windows(*flat([*lengths, 9]), 2, 1)
    some, wanted = StridedWindows(windows, step), torch.arange(0, len(windows), step)
    assert len(some) == len(wanted)
    index = torch.arange(len(some))
    assert all(
        torch.equal(getattr(some.gather(index), part), getattr(windows.gather(wanted), part))
        for part in ("history", "target")
    )
    assert torch.equal(some.series_of(index), windows.series_of(wanted))


def test_every_window_belongs_to_one_series() -> None:
    values, offsets = flat([5, 2, 7])
    windows = Windows(values, offsets, 2, 1)
    assert windows.series_of(torch.arange(len(windows))).tolist() == [0, 0, 0, 2, 2, 2, 2, 2]
    assert windows.starts_of(torch.arange(len(windows))).tolist() == [0, 1, 2, 0, 1, 2, 3, 4]


def test_aligned_batches_lie_series_by_series() -> None:
    windows = AlignedWindows(torch.zeros(3, 20), 4, 2)
    batch = windows.gather(torch.arange(5))
    history = batch.history
    assert history.transpose(0, 1).stride() == (5 * 6, 6, 1)


def test_series_too_short_for_a_window_are_refused() -> None:
    with pytest.raises(DataError, match=r"a window of 8 \+ 4 steps \(the longest has 5\); shorten"):
        Windows(*flat([5, 3]), 8, 4)
    with pytest.raises(DataError, match=r"\(the longest has 0\)"):
        Windows(torch.zeros(0), torch.tensor([0]), 1, 1)
    with pytest.raises(DataError, match=r"the series have 5 steps, too few for a window of 8 \+ 4; shorten"):
        AlignedWindows(torch.zeros(2, 5), 8, 4)


def test_every_row_of_an_aligned_window_knows_its_series() -> None:
    windows = AlignedWindows(torch.arange(12.0).view(3, 4), 2, 1)
    index = torch.tensor([1, 0])
    history = windows.gather(index).history.flatten(0, 1)
    assert windows.series_of(index).tolist() == [0, 1, 2, 0, 1, 2]
    assert torch.equal(history[:, 0].div(4, rounding_mode="floor").long(), windows.series_of(index))
