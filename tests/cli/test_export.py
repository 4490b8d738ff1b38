"""`leapts export` writes one file, by default beside the model."""

import json
import sys
from pathlib import Path

import pytest
import torch

from leapts import LeapTS
from tests.cli.conftest import Leapts

pytestmark = pytest.mark.usefixtures("unchecked_shapes")


def test_file_is_beside_the_model_by_default(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    model = LeapTS(6, 12, max_steps=2, model={"scheduling": "none", "mixing": "none"}).fit(data)
    copy = tmp_path / "weather"
    model.save(copy)
    result = leapts("export", copy, "--format", "pt2")
    assert (result.code, result.err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weather", "weather.pt2"]
    history = torch.zeros(2, 1, 12)
    forecast = torch.export.load(tmp_path / "weather.pt2").module()(history)["forecast"]
    expected = model.predictor_.model.forecast(history).values
    torch.testing.assert_close(forecast.detach(), expected, rtol=1e-5, atol=1e-5)
    answer = json.loads(leapts("export", copy, "--format", "pt2", "--out", tmp_path / "f.pt2", "--json").out)
    assert (answer["file"], answer["input"]) == (str(tmp_path / "f.pt2"), [None, 1, 12])


def test_unwritable_file_is_found_before_the_export(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    for out, message in (
        (tmp_path / "no" / "where.pt2", "does not exist"),
        (tmp_path, "is a folder"),
        (model / "x.pt2", "inside the model folder"),
    ):
        result = leapts("export", model, "--format", "pt2", "--out", out)
        assert result.code == 2
        assert message in result.error_line
    assert leapts("export", model, "--format", "tflite").code == 2
    assert leapts("export", tmp_path / "nothing").code == 2


def test_missing_extra_is_named(leapts: Leapts, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = leapts("export", model, "--out", tmp_path / "m.onnx")
    assert (result.code, "pip install 'leapts[onnx]'" in result.error_line) == (2, True)
    assert list(tmp_path.iterdir()) == []
