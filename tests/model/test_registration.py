"""Registered schedulers and state cells: trained, traced, saved, loaded, and missing."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import leapts
from leapts import ConfigError, LeapTS, ModelFileError, registration
from leapts.model.build import build_model
from leapts.model.state_cells import RecurrentCell
from leapts.parts import SchedulingOptions, StateOptions
from leapts.registration import SCHEDULERS, STATE_CELLS
from tests.forecasting.frames import make_forecaster, make_frame
from tests.model.variants import make_config, make_history

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "custom-scheduler.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
MODEL: dict[str, Any] = {"scheduling": {"kind": "share", "max_leaps": 3}, "mixing": "none", "hidden_size": 8}


@pytest.fixture(autouse=True)
def _only_built_in_kinds_afterwards() -> Iterator[None]:
    tables: list[dict[str, Any]] = [
        table for one in (SCHEDULERS, STATE_CELLS) for table in (one.options, one.factories)
    ]
    known = [dict(table) for table in tables]
    yield
    for table, before in zip(tables, known, strict=True):
        table.clear()
        table.update(before)


def _forget(kind: str) -> None:
    del SCHEDULERS.options[kind], SCHEDULERS.factories[kind]


def _run_page() -> None:
    exec(CODE, {"__name__": "custom_scheduler"})


def _offer(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    (folder / "offered_share.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "offered_share", raising=False)
    offer = EntryPoint("share", "offered_share", SCHEDULERS.group)
    monkeypatch.setattr(registration, "entry_points", lambda *, group: [offer] if group == offer.group else [])


def test_the_scheduler_of_the_page_trains_traces_saves_and_loads(tmp_path: Path) -> None:
    _run_page()
    frame = make_frame()
    model = make_forecaster(model=MODEL).fit(frame)
    forecast, trace = model.predict(return_trace=True)
    leaps = trace.to_frame() if hasattr(trace, "to_frame") else trace
    assert len(leaps) > 0
    assert "share.weight" in " ".join(model.predictor_.model.state_dict())
    model.save(tmp_path / "model")
    again = LeapTS.load(tmp_path / "model").predict()
    np.testing.assert_allclose(again["LeapTS"], forecast["LeapTS"], rtol=1e-6)


def test_dense_and_sparse_execution_agree_for_the_scheduler_of_the_page() -> None:
    _run_page()
    model = build_model(make_config(scheduling={"kind": "share"}), seed=1).double()
    history = make_history().double()
    dense, sparse = (model.forecast(history, execution=execution).values for execution in ("dense", "sparse"))
    torch.testing.assert_close(dense, sparse, atol=1e-12, rtol=1e-12)


def test_a_model_folder_with_an_unregistered_kind_names_it_and_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_page()
    make_forecaster(model=MODEL).fit(make_frame()).save(tmp_path / "model")
    _forget("share")
    with pytest.raises(ModelFileError, match=r"'share'.*leapts\.register_scheduler"):
        LeapTS.load(tmp_path / "model")
    _offer(monkeypatch, tmp_path, CODE)
    with pytest.raises(ModelFileError, match=r"'share'.*import offered_share"):
        LeapTS.load(tmp_path / "model")
    assert "offered_share" not in sys.modules


def test_a_kind_named_by_the_user_is_imported_from_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, tmp_path, CODE)
    assert make_forecaster(model={**MODEL, "scheduling": "share"}).fit(make_frame()).predictor_.config.scheduling.kind
    assert "offered_share" in sys.modules


def test_an_entry_point_that_registers_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, tmp_path, "")
    with pytest.raises(ConfigError, match=r"offered_share.*'share'"):
        make_forecaster(model=MODEL).fit(make_frame())


def test_a_registered_state_cell_runs_through_containers_and_private_attributes() -> None:
    class MineOptions(StateOptions):
        kind: Literal["mine"] = "mine"

    class MineCell(RecurrentCell):
        def __init__(self, options: MineOptions, *, hidden: int, control: int) -> None:
            super().__init__(hidden=hidden, control=control)
            self._kind = options.kind
            self.post = torch.nn.Sequential(torch.nn.Linear(hidden, hidden), torch.nn.Tanh())

        def begin(self, hidden: torch.Tensor) -> torch.Tensor:
            assert self._kind == "mine"
            return self.post(hidden)  # type: ignore[no-any-return]

    leapts.register_state_cell("mine", MineCell, MineOptions)
    model, history = (
        build_model(make_config().model_copy(update={"state": MineOptions()}), seed=1).double(),
        make_history().double(),
    )
    with torch.no_grad():
        torch.testing.assert_close(model.forecast(history).values, model(history), atol=1e-12, rtol=1e-12)


def test_names_that_are_taken_or_differ_from_the_options_are_refused() -> None:
    class Other(SchedulingOptions):
        kind: Literal["flat"] = "flat"

    with pytest.raises(ConfigError, match="'flat'"):
        leapts.register_scheduler("flat", RecurrentCell, Other)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'mine'"):
        leapts.register_scheduler("mine", RecurrentCell, Other)  # type: ignore[arg-type]
