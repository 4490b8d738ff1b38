"""An audit hook: a test fails if the library unpickles objects, evaluates text or starts a program during it.

The library reads untrusted files and needs none of these. What others do counts when `src/leapts` called them.
Imports are left to the scan of the sources, which holds them to names that are written there.
"""

import sys
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).parents[1]
_OURS = str(_ROOT / "src" / "leapts")
# Tests, examples and benchmarks may do what they like, also when the library calls them back.
_OTHERS = tuple(str(_ROOT / name) for name in ("tests", "examples", "benchmarks", "qa", "tools"))

_WATCHED = frozenset(
    (
        *("pickle.find_class", "exec", "subprocess.Popen"),
        *("os.system", "os.exec", "os.fork", "os.forkpty", "os.spawn", "os.posix_spawn"),
    )
)

# Who may evaluate on our behalf, always text of their own making: what makes classes and checks of shapes when a module
# is read, SQLAlchemy, which makes functions for a search's study, and the exporters, which make them of graphs.
_MAY_EVALUATE = (
    *("dataclasses", "collections", "typing", "jaxtyping", "beartype", "sqlalchemy"),
    *("torch.fx.", "torch._", "torch.export", "torch.onnx", "onnx"),
)

# Where a cluster's machines speak to each other: Ray carries what its own workers say in pickles, and nobody else's.
_MAY_UNPICKLE = ("/integrations/ray/tuning.py", "/integrations/ray/forecast.py")

_heard: list[str] = []


def install() -> None:
    """Install the hook, which cannot be removed."""
    sys.addaudithook(_hear)


def require_nothing_heard() -> None:
    """Fail if the hook recorded anything since the last call."""
    heard = "; ".join(_heard[:3])
    _heard.clear()
    assert not heard, f"the library did what it may not: {heard}"


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED:
        return
    caller = sys._getframe(1)
    if event == "exec" and caller.f_globals.get("__name__", "").startswith(_MAY_EVALUATE):
        return
    place = _on_whose_behalf(caller)
    if place is not None and not (event == "pickle.find_class" and place.startswith(_MAY_UNPICKLE)):
        _heard.append(f"{event} {str(arguments)[:100]} at {place}")


def _on_whose_behalf(frame: FrameType | None) -> str | None:
    """Find the line of ours that caused an event; imports are attributed to the imported module."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OURS):
            return f"{file.removeprefix(_OURS)}:{frame.f_lineno}"
        if file.startswith((*_OTHERS, "<frozen importlib")):
            return None
        frame = frame.f_back
    return None
