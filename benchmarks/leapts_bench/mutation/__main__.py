"""Tries every change that is not tried yet, or was not noticed last time.

    python -m leapts_bench.mutation [MODULE ...] [--seconds N]

Nothing of LeapTS is read here: a change to a module has to be there before the module is.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

import torch

from leapts_bench import results
from leapts_bench.mutation.mutants import Mutant, mutants_of
from leapts_bench.mutation.targets import ROOT, TARGETS, Target
from leapts_bench.mutation.trying import NOT_RUN, SURVIVED, try_all

FILE = "mutation.jsonl"
_HEAVY = (
    "fastapi",
    "httpx",
    "hypothesis",
    "msgspec",
    "pandas",
    "polars",
    "pyarrow",
    "pydantic",
    "safetensors",
    "torch._dynamo",
    "uvicorn",
)


def main() -> int:
    """Try them; 1 when there was nothing to try."""
    parser = argparse.ArgumentParser(prog="leapts_bench.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="these alone, such as data/windows.py")
    parser.add_argument("--seconds", type=float, default=36_000, help="to stop after, at the next module")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks" / "results", help="the folder of the results"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in _HEAVY:
        importlib.import_module(name)
    end = time.monotonic() + options.seconds
    tried = 0
    for target in TARGETS:
        if (not options.modules or target.module in options.modules) and time.monotonic() < end:
            tried += _work(target, options.results / FILE)
    if not tried:
        print("nothing was tried", file=sys.stderr)
    return int(not tried)


def _work(target: Target, path: Path) -> int:
    """Try what is not known to be noticed; returns how many changes the module has."""
    mutants = mutants_of(target.source.read_text())
    before = _last(target, path)
    left = [mutant for mutant in mutants if not before.get(mutant.key, {}).get("noticed")]
    provenance = results.provenance()
    started = time.monotonic()

    def found(mutant: Mutant, verdict: str) -> None:
        line = {"module": target.module, "key": mutant.key, "place": mutant.place, "line": mutant.line}
        line |= {"what": mutant.what, "noticed": verdict not in (SURVIVED, NOT_RUN), "by": verdict}
        results.append(path, {**line, **provenance})

    try_all(target, left, found)
    last = _last(target, path)
    for mutant in left:
        if not last[mutant.key]["noticed"]:
            print(f"{target.source}:{mutant.line}: {mutant.what}: {last[mutant.key]['by']}")
    print(f"{target.module}: {len(left)} of {len(mutants)} tried in {time.monotonic() - started:.0f} s", flush=True)
    return len(mutants)


def _last(target: Target, path: Path) -> dict[str, results.Line]:
    """The last line of each change to a module."""
    return {line["key"]: line for line in results.read(path) if line["module"] == target.module}


if __name__ == "__main__":
    sys.exit(main())
