"""Startup time of commands, next to that of Python and torch."""

import subprocess
import sys
from functools import partial

from leapts_bench.results import Line
from leapts_bench.speed.plan import Plan
from leapts_bench.speed.timing import once

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import leapts": ["-c", "import leapts"],
    "leapts --help": ["-m", "leapts", "--help"],
    "import torch": ["-c", "import torch"],
}
_LOADS_TORCH = "import sys, leapts; print('torch' in sys.modules)"


def startup(plan: Plan) -> Line:
    """Measure seconds of each command in a new process, and check whether `import leapts` loads torch."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(plan.rounds):
        for name, arguments in COMMANDS.items():
            times[name].append(once(partial(_started, arguments)))
    loads = _started(["-c", _LOADS_TORCH]).strip() == "True"
    return {"seconds": {name: min(values) for name, values in times.items()}, "leapts_loads_torch": loads}


def _started(arguments: list[str]) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
