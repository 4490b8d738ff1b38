"""An integration without its library names the extra to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("tool", "extra"), [("neuralforecast", "neural"), ("sktime", "sktime"), ("gluonts", "gluonts"), ("fev", "fev")]
)
def test_a_missing_extra_is_named(tool: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == tool or name == f"leapts.integrations.{tool}"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, tool, None)
    with pytest.raises(ImportError, match=rf"pip install 'leapts\[{extra}\]'"):
        importlib.import_module(f"leapts.integrations.{tool}")
