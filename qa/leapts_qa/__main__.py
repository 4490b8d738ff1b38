"""Command line of the stress suites.

python -m leapts_qa run [SUITE ...] [--seconds N] [--since COMMIT]
python -m leapts_qa status [--since COMMIT]
python -m leapts_qa mutation
python -m leapts_qa page
"""

import argparse
import json
import sys
from collections.abc import Collection
from pathlib import Path

import torch

from leapts.errors import LeapTSError
from leapts_qa.mutation import record
from leapts_qa.page import write_page
from leapts_qa.suites import SUITES, commits_since, latest, read, run_pending

_ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 1 if a test case failed."""
    torch.set_num_threads(1)
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "run":
                current = commits_since(options.since) if options.since else None
                asked = {"seconds": options.seconds, "tell": _tell, "current": current}
                failed = run_pending(options.suites, options.results, **asked)
                write_page(options.results, options.out)
                return int(failed > 0)
            case "status":
                _status(options.results, commits_since(options.since) if options.since else None)
            case "mutation":
                print(json.dumps(record(_ROOT, options.results)))
                write_page(options.results, options.out)
            case _:
                write_page(options.results, options.out)
    except LeapTSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="leapts_qa", description="Stress suites of LeapTS.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the units that are not done, and render the page")
    run.add_argument("suites", nargs="*", metavar="SUITE", help=f"only these: {', '.join(SUITES)}")
    run.add_argument("--seconds", type=float, default=36_000, help="time limit")
    status = commands.add_parser("status", help="show how many units of each suite are done")
    mutation = commands.add_parser("mutation", help="record the last run of mutmut, and render the page")
    page = commands.add_parser("page", help="render the page from the results")
    for command in (run, status):
        command.add_argument("--since", metavar="COMMIT", help="results of earlier commits do not count as done")
    for command in (run, mutation, page):
        command.add_argument("--out", type=Path, default=_ROOT / "docs" / "reliability.md", help="the page")
    for command in (run, status, mutation, page):
        command.add_argument("--results", type=Path, default=_ROOT / "qa" / "results", help="the results folder")
    return parser


def _status(folder: Path, current: Collection[str] | None) -> None:
    lines = [line for line in read(folder) if current is None or line["commit"] in current]
    done = latest(lines)
    for name, suite in SUITES.items():
        count = sum((name, unit) in done for unit in suite.units)
        print(f"{name:28} {count:3} of {len(suite.units)} units done")


def _tell(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
