"""Which modules are tried, and the tests that have to notice."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Target:
    """A module and its tests.

    Attributes:
        module: Its file below `src/leapts`.
        tests: Files and folders below `tests`, the nearest first.
        first: A test that is run before any fault is put in, for the models its fixtures make.
        below: Modules that are read before any fault is put in, as they know nothing of this one.
        root: The folder that `src` and `tests` are in.
    """

    module: str
    tests: tuple[str, ...]
    first: str | None = None
    below: tuple[str, ...] = ()
    root: Path = ROOT

    @property
    def source(self) -> Path:
        """The file."""
        return self.root / "src" / "leapts" / self.module


_FOLDER = ("forecaster/test_folder.py", "forecaster/test_stored.py", "forecaster/test_contents.py")
_SAVED_ONCE = "test_the_folder_holds_three_plain_files"
_BELOW_THE_FOLDER = ("tests.conftest", "leapts.training", "leapts.data.validation")
_PLAIN = (
    Target("core/control.py", ("core/test_control.py",)),
    Target("core/scales.py", ("core/test_scales.py",)),
    Target("core/segments.py", ("core/test_segments.py", "core/test_outputs.py")),
    Target("data/splits.py", ("data/test_splits.py",)),
    Target("data/borders.py", ("data/test_splits.py",)),
    Target("data/windows.py", ("data/test_windows.py",)),
    Target("data/validation.py", ("data/test_validation.py", "test_wording.py", "data/test_panel.py")),
    Target("intervals.py", ("test_intervals.py",)),
    Target("files.py", ("test_files.py",)),
    Target("training/state.py", ("training/test_state.py",)),
    Target("training/checkpoint.py", ("training/test_checkpoint_file.py",)),
    Target("forecaster/contents.py", _FOLDER[::-1], _SAVED_ONCE, _BELOW_THE_FOLDER),
    Target("forecaster/folder.py", _FOLDER, _SAVED_ONCE, _BELOW_THE_FOLDER),
)
_SERVER = {
    "app": ("app", "forecast", "guard"),
    "batching": ("batching",),
    "connections": ("connections", "limits"),
    "guard": ("guard", "metrics"),
    "intake": ("intake", "limits", "problems"),
    "limits": ("limits",),
    "metrics": ("metrics",),
    "problems": ("problems",),
    "running": ("running", "guard", "limits"),
    "tables": ("tables",),
    "waiting": ("waiting",),
    "wire": ("wire", "problems"),
}
# The tests' own settings come first: they have the shapes checked of all that is read after them.
_BELOW_THE_SERVER = ("tests.conftest", "leapts.forecaster", "leapts.report", "leapts.cli.app", "tests.cli.conftest")
_WITHOUT_MODELS = ("description", "docs", "extra", "stamps", "web")
_FITTED_ONCE = "test_only_what_takes_leaps_can_tell_of_them"
_READ_ONCE = "test_models_and_traces_are_not_mixed"

TARGETS = (
    *_PLAIN,
    Target("serve/models.py", ("serve/test_models.py",), _FITTED_ONCE, _BELOW_THE_SERVER),
    *(
        Target(
            f"serve/{module}.py",
            (*(f"serve/test_{test}.py" for test in tests), "serve/test_batching.py"),
            _READ_ONCE,
            _BELOW_THE_SERVER,
        )
        for module, tests in _SERVER.items()
    ),
    *(
        Target(f"serve/{module}.py", (f"serve/test_{module}.py",), below=_BELOW_THE_SERVER)
        for module in _WITHOUT_MODELS
    ),
)
