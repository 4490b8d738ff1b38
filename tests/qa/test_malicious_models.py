"""A short share of the forged and corrupted model folders; all of it runs with `make stress`."""

import ast
import os
from pathlib import Path

import pytest
import torch

from leapts import LeapTS
from leapts_qa import corruption, malicious_models
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves

SOURCES = Path(__file__).parents[2] / "src"


def test_malicious_folders_are_refused_or_harmless(tmp_path: Path) -> None:
    outcome = malicious_models.run("files", tmp_path)
    assert not outcome.failures
    assert outcome.cases >= 45
    assert outcome.ends["refused"] > 40


def test_malicious_pretrained_weights_are_refused_or_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malicious_models, "_TENSOR_HARMS", dict(list(malicious_models._TENSOR_HARMS.items())[:3]))
    outcome = malicious_models.run("pretrained weights", tmp_path)
    assert not outcome.failures
    assert outcome.ends["refused"] > 20


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize("how", malicious_models._TENSOR_HARMS)
def test_every_forgery_applies_to_tensors_of_every_type(how: str, kind: torch.dtype) -> None:
    for shape in ((), (2,), (2, 3)):
        malicious_models._TENSOR_HARMS[how](torch.zeros(shape, dtype=kind))


def test_a_folder_that_runs_code_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forecaster().fit(waves()).save(tmp_path / "model")
    load = LeapTS.load
    monkeypatch.setattr(LeapTS, "load", lambda path: (os.system("true"), load(path))[1])
    outcome = Outcome()
    malicious_models.judge("one that runs something", tmp_path / "model", outcome)
    assert "os.system" in outcome.failures[0]


@pytest.mark.parametrize("unit", ["config.json bit 5", "config.json cut", "model.safetensors bit 0"])
def test_corruption_is_detected(unit: str, tmp_path: Path) -> None:
    outcome = corruption.run(unit, tmp_path, stride=23)
    assert not outcome.failures
    assert outcome.ends["detected"] > 80


def test_the_library_never_unpickles_evaluates_or_imports_by_name() -> None:
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "runpy", "subprocess"}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.relative_to(SOURCES)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not forbidden & {name.name.partition(".")[0] for name in node.names}, where
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] not in forbidden, where
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("eval", "exec", "compile", "__import__", "os.system", "pd.read_pickle"), where
                assert called not in ("torch.load", "torch.jit.load", "torch.export.load"), where
                if called == "np.load":
                    assert "allow_pickle=False" in ast.unparse(node), where
                if called.endswith("import_module") and path.name != "renamed.py":  # its table is part of the source
                    assert isinstance(node.args[0], ast.Constant), where
