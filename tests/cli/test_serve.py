"""`leapts serve` checks its arguments before it listens; tests/server has the rest."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Leapts

SERVE = "leapts.server.running.serve"


def test_missing_extra_is_named(leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = leapts("serve", model)
    assert (result.code, "pip install 'leapts[serve]'" in result.error_line) == (2, True)


def test_missing_model_is_named(leapts: Leapts, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    result = leapts("serve", tmp_path / "nowhere", "--port", 0)
    assert (result.code, "nowhere" in result.error_line) == (2, True)


def test_open_address_without_token_is_noted(leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    monkeypatch.delenv("LEAPTS_TOKEN", raising=False)
    monkeypatch.setattr(SERVE, lambda _app, listening, _limits, ready: (ready(), listening.close()))
    result = leapts("serve", f"m={model}", "--host", "0.0.0.0", "--port", 0)
    assert result.code == 0
    assert "--token-file" in result.err
    assert "m at http://0.0.0.0:" in result.out
    assert leapts("serve", model, "--port", 0).err == ""
