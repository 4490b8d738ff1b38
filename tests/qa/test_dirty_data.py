"""A short share of the dirty data."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from leapts import DataError
from leapts.files import decompress
from leapts_qa import dirty_data
from leapts_qa.data_defects import Defect
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

pytestmark = pytest.mark.filterwarnings("ignore:columns not used:UserWarning")


@pytest.mark.parametrize("door", ["file", "frame", "command line", "pretrained"])
def test_dirty_data_are_repaired_or_refused(door: str, tmp_path: Path) -> None:
    outcome = dirty_data.run(door, tmp_path, most=45)
    assert not outcome.failures
    assert outcome.cases == 45
    assert outcome.ends["same forecast as from clean data"] >= 7
    assert outcome.ends["refused, with place and hint"] >= 20


@pytest.mark.parametrize("unit", ["frames seed 0", "pretrained, frames seed 0"])
def test_generated_frames_give_a_finite_forecast_or_are_refused(unit: str, tmp_path: Path) -> None:
    outcome = dirty_data.run(unit, tmp_path, most=60)
    assert not outcome.failures
    assert outcome.ends["finite forecast"] >= 5


def test_a_silent_nan_or_another_forecast_is_detected() -> None:
    outcome = Outcome()
    dirty_data.judge(Defect("one", b""), {"values": [1.0, float("nan")]}, [1.0, 2.0], outcome)
    dirty_data.judge(Defect("two", b""), {"values": [1.0, 2.1]}, [1.0, 2.0], outcome)
    dirty_data.judge(Defect("three", b""), {"refused": "no"}, [1.0, 2.0], outcome)
    assert len(outcome.failures) == 3


def test_a_gzip_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(DataError, match=r"bomb\.csv\.gz: .*100 times"):
        decompress(gzip.compress(bytes(100_000_000), compresslevel=1), "bomb.csv.gz")


@pytest.mark.parametrize("odd", [np.inf, 2**63 - 1])
def test_a_very_long_timestamp_is_refused(odd: float) -> None:
    frame = waves().astype({"ds": object})
    frame.loc[5, "ds"] = odd
    with pytest.raises(DataError, match="the frame"):
        forecaster(max_steps=1).fit(frame)
