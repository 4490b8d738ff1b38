"""Module names of release 0.1.0 go on working, with a warning that names the new module."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

from leapts.renamed import RENAMED


@pytest.mark.parametrize(
    "old", [name for name in RENAMED if not name.startswith(("leapts.adapters.", "leapts.scaleout"))]
)
def test_an_old_module_has_the_names_of_its_successor(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=RENAMED[old][0].replace(".", r"\.")):
        module = importlib.import_module(old)
    for new in RENAMED[old]:
        successor = importlib.import_module(new)
        for name in getattr(successor, "__all__", [name for name in vars(successor) if name[0] != "_"]):
            assert getattr(module, name) is getattr(successor, name)


@pytest.mark.parametrize("new", sorted({new for names in RENAMED.values() for new in names}))
def test_every_successor_exists(new: str) -> None:
    assert importlib.util.find_spec(new) is not None


def test_other_names_are_still_missing() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("leapts.no_such_module")


def test_importing_leapts_imports_no_successor() -> None:
    code = "import leapts, sys; sys.exit('leapts.forecasting' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
