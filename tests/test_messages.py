import numpy as np
import pandas as pd
import pytest

from leapts.config import ReadOptions
from leapts.data.validation import read_panel
from leapts.errors import DataError
from leapts.messages import counted, listed, nearest, printable, quoted, timestamp_text


def test_quotes_are_short_and_safe_to_print() -> None:
    assert quoted("a\x1b[31m\n") == r"'a\x1b[31m\n'"
    assert len(quoted("x" * 1000)) <= 41
    assert quoted(np.float64(1.5)) == "1.5"


def test_printable_text_stays_on_its_line_and_cannot_command_a_terminal() -> None:
    assert printable("a\x1b[31m\nb\u202e\x9b\ud800é") == r"a\x1b[31m\nb\u202e\x9b\ud800é"
    assert printable("plain text, 東京") == "plain text, 東京"


def test_lists_are_cut() -> None:
    assert listed(["a", 1]) == "'a', 1"
    assert listed(range(11)).endswith("7 and 3 more")


def test_counts_agree_with_their_noun() -> None:
    assert [counted(1, "row"), counted(1200, "row"), counted(2, "series")] == ["1 row", "1,200 rows", "2 series"]


def test_the_nearest_name_is_near() -> None:
    assert nearest("Unique_ID", ["ds", "unique_id"]) == "unique_id"
    assert nearest("sales", ["ds", "y"]) is None


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        ("2024-01-05", "2024-01-05"),
        ("2024-01-05T13:00", "2024-01-05 13:00"),
        ("2024-01-05T00:00:07", "2024-01-05 00:00:07"),
        ("2024-01-05T00:00:00.5", "2024-01-05 00:00:00.500000"),
    ],
)
def test_timestamps_are_written_without_their_zeros(timestamp: str, text: str) -> None:
    assert timestamp_text(np.datetime64(timestamp, "us")) == text
    assert timestamp_text(np.int64(7)) == "7"


def test_aware_timestamps_are_named_in_their_own_timezone() -> None:
    timestamps = pd.date_range("2024-07-01", periods=4, freq="h", tz="Europe/Berlin").delete(2)
    with pytest.raises(DataError, match=r"no row for 2024-07-01 02:00:00\+02:00"):
        read_panel(pd.DataFrame({"ds": timestamps, "y": [1.0, 2, 3]}))


def test_a_wide_frame_needs_a_time_column_and_a_series() -> None:
    wide = ReadOptions(layout="wide")
    with pytest.raises(DataError, match="has no column 'ds', only 'a'; pass time_col="):
        read_panel(pd.DataFrame({"a": [1.0, 2.0]}), wide)
    with pytest.raises(DataError, match="has only the time column 'ds'; add one column for each series"):
        read_panel(pd.DataFrame({"ds": [1, 2]}), wide)
