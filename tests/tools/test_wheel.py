"""The wheel is small, complete and typed, and every build of one source gives the same bytes."""

import os
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def _source(folder: Path) -> Path:
    """Copy the files that the wheel is built from."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _wheel(source: Path) -> Path:
    builder = WheelBuilder(str(source))
    return Path(next(builder.build(directory=str(source / "dist"), versions=["standard"])))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wheel(_source(tmp_path_factory.mktemp("wheel") / "source"))


@pytest.mark.parametrize("epoch", [None, "1700000000"])
def test_two_builds_are_the_same_bytes(epoch: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if epoch is None:
        monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    else:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    first, second = _source(tmp_path / "first"), _source(tmp_path / "second")
    # Times and permissions of the files must not show.
    for path in (second / "src").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert _wheel(first).read_bytes() == _wheel(second).read_bytes()


def test_the_wheel_is_small_and_holds_the_data_once(wheel: Path) -> None:
    assert wheel.stat().st_size < 8_000_000  # pretrained weights are 4.2 MB of it
    names = zipfile.ZipFile(wheel).namelist()
    for file in ("seattle_weather.csv", "shop_sales.csv", "retail_promotions.csv"):
        assert len([name for name in names if name.endswith(file)]) == 1
    assert "leapts/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"leapts", f"leapts-{VERSION}.dist-info"}


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    source = ROOT / "src"
    files = {str(path.relative_to(source)) for path in (source / "leapts").rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())
