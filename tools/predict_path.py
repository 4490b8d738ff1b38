"""Count the modules of leapts that one `leapts predict` runs through, and the calls between them.

python tools/predict_path.py           the two counts
python tools/predict_path.py --list    every module, and every pair of modules with its calls
"""

import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import resources
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any


@dataclass
class CallPath:
    """Modules that ran, and calls from one module of leapts into another."""

    modules: set[str] = field(default_factory=set)
    switches: Counter[tuple[str, str]] = field(default_factory=Counter)

    def record(self, frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG002 - the signature of a profiler
        """Count a call if its code belongs to leapts; for `sys.setprofile`."""
        if event != "call" or (name := _module(frame)) is None:
            return
        self.modules.add(name)
        caller = _calling_module(frame)
        if caller not in (None, name):
            self.switches[str(caller), name] += 1

    def __str__(self) -> str:
        return f"{len(self.modules)} modules, {self.switches.total()} switches"


def measure() -> CallPath:
    """Profile one `leapts predict` on a small fitted model; imports are not counted."""
    from leapts.cli.app import run

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model = folder / "weather.csv", folder / "model"
        data.write_bytes((resources.files("leapts.datasets") / "bundled" / "seattle_weather.csv").read_bytes())
        predict = ["predict", str(model), str(data), "-o", str(folder / "forecast.csv"), "--level", "80"]
        for arguments in (["fit", str(data), "--horizon", "7", "--max-steps", "2", "--out", str(model)], predict):
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                code = run(arguments)
            if code != 0:
                raise RuntimeError(f"leapts {' '.join(arguments)} failed")
        found = CallPath()
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            sys.setprofile(found.record)
            try:
                run(predict)
            finally:
                sys.setprofile(None)
        return found


def _module(frame: FrameType) -> str | None:
    """Name of the frame's module if it belongs to leapts and is not just being imported."""
    name = str(frame.f_globals.get("__name__", ""))
    ours = name == "leapts" or name.startswith("leapts.")
    return name if ours and frame.f_code.co_name != "<module>" else None


def _calling_module(frame: FrameType) -> str | None:
    """Name of the nearest leapts module above a frame."""
    above = frame.f_back
    while above is not None and _module(above) is None:
        above = above.f_back
    return None if above is None else _module(above)


def main() -> None:
    """Print the counts, and with `--list` what they count."""
    found = measure()
    print(found)
    if "--list" in sys.argv[1:]:
        for name in sorted(found.modules):
            print(name)
        for (caller, called), count in found.switches.most_common():
            print(f"{count:4d}  {caller} -> {called}")


if __name__ == "__main__":
    main()
