"""A short share of thread safety, memory leaks and concurrent fits."""

from itertools import count
from pathlib import Path

import pandas as pd
import pytest

from leapts import FolderInUseError, LeapTS, files
from leapts.files import claimed
from leapts_qa import concurrency, concurrent_fits
from leapts_qa.samples import forecaster, waves


@pytest.mark.parametrize("unit", concurrency.THREAD_UNITS)
def test_threads_that_share_a_model_get_the_forecast_of_one_thread(unit: str, tmp_path: Path) -> None:
    outcome = concurrency.run_threads(unit, tmp_path, predictions=2)
    assert not outcome.failures
    assert outcome.cases == 2 * concurrency.THREADS


def test_mixed_up_threads_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predict, calls = LeapTS.predict, count()
    monkeypatch.setattr(
        LeapTS,
        "predict",
        lambda model, df, **options: predict(model, waves() if next(calls) == 30 else df, **options),
    )
    assert len(concurrency.run_threads("predict", tmp_path, predictions=2).failures) == 1


def test_forecasts_leak_no_memory(tmp_path: Path) -> None:
    outcome = concurrency.run_memory("arrays", tmp_path, predictions=300)
    assert not outcome.failures
    assert outcome.cases == 300


def test_a_memory_leak_is_detected() -> None:
    leaked: list[object] = []

    def leaking(frame: pd.DataFrame) -> list[pd.DataFrame]:
        # A block of 64 MB always comes fresh from the system, whatever memory earlier tests have left free.
        leaked.append([b"leak" * 2**24] if len(leaked) == 900 else [])
        return [frame]

    megabytes, objects, differing = concurrency.repeated(leaking, 1000)
    assert megabytes > concurrency.MAX_GROWTH
    assert objects > 600
    assert differing == 0


@pytest.mark.parametrize("unit", concurrent_fits.UNITS)
def test_the_second_of_two_fits_in_one_folder_is_refused(unit: str, tmp_path: Path) -> None:
    outcome = concurrent_fits.run(unit, tmp_path)
    assert not outcome.failures
    assert outcome.cases == 3


def test_two_fits_in_one_folder_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_locked", lambda _: None)
    assert any("the second" in failure for failure in concurrent_fits.run("checkpoint", tmp_path).failures)


def test_a_claim_ends_with_its_block_and_leaves_no_file(tmp_path: Path) -> None:
    with claimed(tmp_path / "run"):
        with pytest.raises(FolderInUseError, match="run is in use by another fit; wait"), claimed(tmp_path / "run"):
            pass
        assert (tmp_path / "run").is_dir()
    assert not (tmp_path / "run").exists()
    with claimed(tmp_path / "run"):
        (tmp_path / "run" / "state").write_text("kept")
    assert (tmp_path / "run" / "state").exists()


def test_a_fit_that_fails_frees_its_folder(tmp_path: Path) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forecaster().fit(waves(), checkpoint_dir=tmp_path / "run", progress=stop)
    forecaster().fit(waves(), checkpoint_dir=tmp_path / "run", resume=True)
