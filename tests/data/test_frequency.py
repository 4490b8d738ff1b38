import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import ReadOptions
from leapts.data.frequency import (
    future_timestamps,
    infer_frequency,
    parse_frequency,
    positions_of,
    seasonal_period,
    timestamps_at,
)
from leapts.data.validation import read_panel
from leapts.errors import DataError

ALIAS_LIST = (
    "min 10min 15min 90min h 2h 12h 36h D 2D 3D B W-SUN W-TUE 2W-MON MS ME 2MS QS QE QS-FEB QE-NOV QE-OCT "
    "YS YE YS-APR YE-JUN 2YS BMS BME BQS BQE BYE"
)
ALIASES = ALIAS_LIST.split()
TIMEZONES = [None, "UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"]
START = np.array([0], dtype=np.int64)


def regular(start: str, periods: int, freq: str) -> np.ndarray:
    return pd.date_range(start, periods=periods, freq=freq).as_unit("us").to_numpy()


@given(st.sampled_from(ALIASES), st.datetimes(pd.Timestamp("1950-01-01"), pd.Timestamp("2080-01-01")))
def test_future_timestamps_equal_a_pandas_date_range(alias: str, start: pd.Timestamp) -> None:
    timestamps = regular(str(pd.Timestamp(start).floor("min")), 30, alias)
    future = future_timestamps(timestamps[[3, 7, 3]], alias, 9)
    np.testing.assert_array_equal(future, np.stack([timestamps[4:13], timestamps[8:17], timestamps[4:13]]))


@given(
    st.sampled_from(ALIASES),
    st.sampled_from(TIMEZONES),
    st.datetimes(pd.Timestamp("2015-01-01"), pd.Timestamp("2019-01-01")),
    st.lists(st.integers(0, 500), min_size=1, max_size=20),
)
def test_positions_invert_timestamps(alias: str, timezone: str | None, start: pd.Timestamp, steps: list[int]) -> None:
    first = regular(str(pd.Timestamp(start).floor("h")), 1, alias)
    if timezone is not None:
        local = pd.DatetimeIndex(first).tz_localize(timezone, ambiguous=True, nonexistent="shift_forward")
        first = local.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()
    positions = np.array(steps, dtype=np.int64)
    firsts = np.repeat(first, len(positions))
    timestamps = timestamps_at(firsts, positions, alias, timezone)
    np.testing.assert_array_equal(positions_of(timestamps, firsts, alias, timezone), positions)


@pytest.mark.parametrize("alias", ["D", "2D", "7D", "B", "W-SUN", "2W-SUN"])
@pytest.mark.parametrize(
    ("timezone", "hour"), [("America/New_York", "02:00"), ("Europe/Berlin", "02:30"), ("America/Santiago", "00:30")]
)
def test_positions_invert_timestamps_at_times_of_day_that_are_skipped(alias: str, timezone: str, hour: str) -> None:
    walls = pd.date_range(f"2023-01-01 {hour}", periods=400, freq=alias)
    local = walls.tz_localize(timezone, nonexistent="shift_forward", ambiguous=np.ones(400, dtype=bool))
    timestamps = local.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()
    assert (local.tz_localize(None) != walls).any() == (alias != "B")
    first = np.repeat(timestamps[:1], 400)
    np.testing.assert_array_equal(timestamps_at(first, np.arange(400), alias, timezone), timestamps)
    np.testing.assert_array_equal(positions_of(timestamps, first, alias, timezone), np.arange(400))
    later = timestamps + np.timedelta64(3, "h")
    assert set(positions_of(later, first, alias, timezone)) == {-1}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("start", ["2019-12-31", "2023-01-17 00:00"])
def test_an_inferred_frequency_continues_the_timestamps(alias: str, start: str) -> None:
    timestamps = regular(start, 60, alias)
    inferred = infer_frequency(timestamps[:50], START)
    np.testing.assert_array_equal(future_timestamps(timestamps[49:50], inferred, 10)[0], timestamps[50:])


@pytest.mark.parametrize("alias", ["10min", "h", "D", "W-TUE", "MS", "QE-DEC", "YS-JAN", "3D"])
def test_inference_survives_gaps(alias: str) -> None:
    timestamps = regular("2010-01-01", 60, alias)
    assert infer_frequency(np.delete(timestamps, [5, 6, 20, 41]), START) == alias


def test_integer_steps_have_an_integer_frequency() -> None:
    steps = np.array([1, 3, 5, 9, 11, 4, 6], dtype=np.int64)
    assert infer_frequency(steps, np.array([0, 5])) == 2
    np.testing.assert_array_equal(future_timestamps(np.array([11, 6]), 2, 2), [[13, 15], [8, 10]])


def test_business_days_are_distinguished_from_days() -> None:
    assert infer_frequency(regular("2024-01-01", 15, "B"), START) == "B"
    assert infer_frequency(regular("2024-01-01", 15, "D"), START) == "D"
    assert infer_frequency(regular("2024-01-01", 5, "D"), START) == "D"  # Monday to Friday of one week


@pytest.mark.parametrize(
    ("timestamps", "alias"),
    [
        (["2024-01-01", "2024-04-01"], "QS-JAN"),  # thirteen weeks, too
        (["2023-02-01", "2023-03-01"], "MS"),  # four weeks, too
        (["2024-01-02", "2024-01-30", "2024-02-27"], "4W-TUE"),
        (["2024-01-02", "2024-02-01", "2024-03-02"], "30D"),
    ],
)
def test_months_are_preferred_to_weeks_and_days(timestamps: list[str], alias: str) -> None:
    assert infer_frequency(np.array(timestamps, dtype="datetime64[us]"), START) == alias


def test_the_frequency_ignores_the_jump_between_two_series() -> None:
    timestamps = np.concatenate([regular("2024-01-01", 2, "D"), regular("2024-03-01", 2, "D")])
    assert infer_frequency(timestamps, np.array([0, 2])) == "D"


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize(
    ("start", "freq"), [("2024-03-25", "h"), ("2024-10-20", "h"), ("2024-03-05", "D"), ("2024-01-31", "ME")]
)
def test_hourly_steps_cross_daylight_saving_changes(timezone: str, start: str, freq: str) -> None:
    expected = pd.date_range(start, periods=400, freq=freq, tz=timezone)
    utc = expected.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()
    np.testing.assert_array_equal(future_timestamps(utc[:1], freq, 399, timezone)[0], utc[1:])
    assert infer_frequency(utc, START, timezone) == freq
    np.testing.assert_array_equal(positions_of(utc, np.repeat(utc[:1], 400), freq, timezone), np.arange(400))


@pytest.mark.parametrize(
    ("freq", "timestamp"),
    [
        ("h", "2024-01-01 01:30"),
        ("D", "2024-01-02 06:00"),
        ("MS", "2024-02-02"),
        ("MS", "2024-02-01 12:00"),
        ("2MS", "2024-02-01"),
        ("B", "2024-01-06"),
        ("W-MON", "2024-01-09"),
    ],
)
def test_timestamps_between_the_steps_have_no_position(freq: str, timestamp: str) -> None:
    first = regular("2024-01-01", 1, "D")
    timestamps = np.array([timestamp], dtype="datetime64[us]")
    assert positions_of(timestamps, first, freq).tolist() == [-1]


def test_a_day_that_starts_late_is_still_the_next_day() -> None:
    """On 2018-11-04 the clocks of São Paulo went from midnight straight to one o'clock."""
    local = pd.date_range("2018-11-01", periods=8).tz_localize("America/Sao_Paulo", nonexistent="shift_forward")
    utc = local.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()
    assert infer_frequency(utc, START, "America/Sao_Paulo") == "D"
    np.testing.assert_array_equal(future_timestamps(utc[:1], "D", 7, "America/Sao_Paulo")[0], utc[1:])
    from_late = utc[3:]
    positions = positions_of(from_late, np.repeat(utc[:1], 5), "D", "America/Sao_Paulo")
    np.testing.assert_array_equal(positions, [3, 4, 5, 6, 7])
    # And those after it are midnights again, also when that day is the one to count from.
    np.testing.assert_array_equal(future_timestamps(from_late[:1], "D", 4, "America/Sao_Paulo")[0], from_late[1:])
    positions = positions_of(from_late, np.repeat(from_late[:1], 5), "D", "America/Sao_Paulo")
    np.testing.assert_array_equal(positions, [0, 1, 2, 3, 4])
    assert infer_frequency(from_late[:2], START, "America/Sao_Paulo") == "D"


@pytest.mark.parametrize("time", ["00:00", "00:30", "01:00"])
def test_times_of_day_that_are_skipped_once_come_back(time: str) -> None:
    days = pd.date_range(f"2018-10-30 {time}", periods=12)
    frame = pd.DataFrame({"ds": days.tz_localize("America/Sao_Paulo", nonexistent="shift_forward"), "y": 1.0})
    for known in range(2, 12):  # 6 of which end on the day that starts late
        panel = read_panel(frame[:known], ReadOptions(freq="D"))
        later = (
            pd.DatetimeIndex(panel.future_timestamps(12 - known)[0]).tz_localize("UTC").tz_convert("America/Sao_Paulo")
        )
        assert list(later) == list(frame["ds"][known:])


def test_a_last_timestamp_off_the_calendar_is_refused() -> None:
    with pytest.raises(DataError, match=r"'MS' does not fit the timestamp 2024-01-15; pass the frequency"):
        future_timestamps(regular("2024-01-15", 1, "D"), "MS", 3)


def test_each_series_continues_from_its_own_end() -> None:
    last = np.array(["1999-12-31", "2024-02-29"], dtype="datetime64[us]")
    expected = np.array([["2000-01-31", "2000-02-29"], ["2024-03-31", "2024-04-30"]], dtype="datetime64[us]")
    np.testing.assert_array_equal(future_timestamps(last, "ME", 2), expected)


PERIODS = (
    "h=24 15min=96 10min=144 5min=288 30min=48 s=3600 7h=1 24h=7 D=7 B=5 W=52 W-SUN=52 2W-SUN=26 "
    "MS=12 ME=12 BME=12 2MS=6 QS=4 QE-DEC=4 BQE=4 YS=1 YE=1"
)


@pytest.mark.parametrize("case", PERIODS.split())
def test_seasonal_period(case: str) -> None:
    freq, period = case.split("=")
    assert seasonal_period(freq) == int(period)


def test_integer_steps_have_no_season() -> None:
    assert seasonal_period(1) == 1


@pytest.mark.parametrize(
    ("freq", "message"),
    [
        ("M", "'M' is not a frequency; pandas spells it 'ME'"),
        ("2H", "pandas spells it '2h'"),
        ("Q-DEC", "pandas spells it 'QE-DEC'"),
        ("fortnight", "use a pandas alias such as"),
        (0, "freq=0"),
        ("-1D", "freq='-1D'"),
        ("ns", "finer than a microsecond"),
        ("bh", "business hours"),
    ],
)
def test_an_invalid_frequency_is_refused_with_a_hint(freq: str | int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_frequency(freq)


def test_no_frequency_is_inferred_from_one_timestamp() -> None:
    with pytest.raises(DataError, match="pass freq="):
        infer_frequency(regular("2024-01-01", 2, "D"), np.array([0, 1]))


def test_seasons_that_look_like_months_are_refused_with_a_hint() -> None:
    """2000/01, 2001/02, ... read as months are thirteen months apart."""
    timestamps = np.array([f"{2000 + year}-{1 + year:02}" for year in range(11)], dtype="datetime64[M]").astype(
        "datetime64[us]"
    )
    with pytest.raises(DataError, match="pass freq="):
        infer_frequency(timestamps, START)
    assert infer_frequency(regular("2024-01-01", 12, "4MS"), START) == "4MS"


def test_monthly_timestamps_in_mid_month_are_refused_with_a_hint() -> None:
    timestamps = regular("2024-01-01", 12, "MS") + np.timedelta64(14, "D")
    with pytest.raises(DataError, match=r"no calendar frequency; pass freq=.* freq=1"):
        infer_frequency(timestamps, START)


@pytest.mark.parametrize("freq", ["999999999999D", "20000000D", "999999999999h", 2**53 + 1])
def test_a_step_too_long_for_any_calendar_is_refused(freq: str | int) -> None:
    with pytest.raises(DataError, match=r"freq=.*the step must be shorter"):
        parse_frequency(freq)


@pytest.mark.parametrize(
    ("freq", "first"),
    [
        ("D", "9999-12-30"),
        ("100000D", "2024-01-01"),
        ("h", "9999-12-31 22:00"),
        ("30000YS", "2024-01-01"),
        ("9999999MS", "2024-01-01"),
        ("500YS", "9001-01-01"),
    ],
)
def test_timestamps_end_with_year_9999(freq: str, first: str) -> None:
    with pytest.raises(DataError, match="later than any possible timestamp"):
        timestamps_at(np.array([first] * 2, dtype="datetime64[us]"), np.array([2, 30]), freq)


def test_integer_timestamps_end_with_the_largest_integer() -> None:
    last = np.array([2**63 - 3])
    assert timestamps_at(last, np.array([2]), 1).tolist() == [2**63 - 1]
    with pytest.raises(DataError, match="3 steps after 9223372036854775805"):
        timestamps_at(last, np.array([3]), 1)
