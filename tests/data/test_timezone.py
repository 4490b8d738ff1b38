"""Timezones are looked up without importing or opening anything by their names."""

import sys
import zoneinfo
from datetime import timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leapts import LeapTS
from leapts.data import timezone as timezone_module
from leapts.data.timezone import is_timezone
from leapts_qa.samples import forecaster, waves


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "+05:30"])
def test_timezones_of_the_system_are_known(timezone: str) -> None:
    assert is_timezone(timezone)


@pytest.mark.parametrize(
    "name", ["V2000000000", "", "Europe", "/etc/passwd", "../../../etc/passwd", "dateutil//etc/passwd", "UTC\n", "os"]
)
def test_paths_and_other_names_are_not_timezones(name: str) -> None:
    modules = set(sys.modules)
    assert not is_timezone(name)
    assert set(sys.modules) == modules


def test_timezones_of_the_package_are_known_without_those_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    monkeypatch.setattr(timezone_module, "find_spec", lambda _: None)
    assert not is_timezone("Moon/Base")
    assert is_timezone("UTC")
    (tmp_path / "zoneinfo" / "Moon").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Moon" / "Base").touch()
    monkeypatch.setattr(
        timezone_module, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    )
    assert is_timezone("Moon/Base")


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin", timezone(timedelta(hours=5, minutes=30))])
def test_a_model_with_a_timezone_can_be_loaded(timezone: Any, tmp_path: Path) -> None:
    frame = waves()
    frame["ds"] = frame["ds"].dt.tz_localize(timezone)
    model = forecaster(max_steps=1).fit(frame)
    model.save(tmp_path / "model")
    loaded = LeapTS.load(tmp_path / "model")
    assert loaded.predict()["ds"].equals(model.predict()["ds"])
