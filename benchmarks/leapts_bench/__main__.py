"""Command line of the benchmarks.

    python -m leapts_bench run SUITE [--workers 2] [--only DATASET ...] [--model NAME ...] [--seed N ...]
    python -m leapts_bench run gift [--model NAME ...] [--time-limit SECONDS]
    python -m leapts_bench run SUITE --engine ray [--address ADDRESS]
    python -m leapts_bench status
    python -m leapts_bench table
    python -m leapts_bench search [DATASET ...]
    python -m leapts_bench local-search DATASET ...
    python -m leapts_bench final-selection DATASET ...
    python -m leapts_bench speed [POINT ...] [--threads 1 2]
    python -m leapts_bench serve [--soak SECONDS] [--examples N]

The data sets are in the folder that `LEAPTS_DATA` names.
"""

import argparse
import sys
from pathlib import Path

import torch

from leapts.datasets.catalogue import find, stored_file
from leapts.datasets.loading import data_folder
from leapts.errors import LeapTSError
from leapts_bench import execution, recipes, results
from leapts_bench.baselines import BASELINES, is_available
from leapts_bench.cluster import work_on_cluster
from leapts_bench.local_search import final_selection, local_search
from leapts_bench.runs import BaselineDesign, Job, PublishedRun, Run, parse_run
from leapts_bench.search import LOG, search
from leapts_bench.serve import measure as measure_server
from leapts_bench.speed import POINTS, Plan, measure
from leapts_bench.suites import SUITES, entries
from leapts_bench.tables import pages
from leapts_bench.tables.serving import write_table

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 1 if something failed."""
    torch.set_num_threads(1)
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "run":
                return _run(options)
            case "status":
                _status(options.results)
            case "table":
                pages.write(options.results, options.out)
            case "speed":
                plan = Plan(rounds=options.rounds, budget=options.budget, is_quick=options.quick)
                measure(options.points or list(POINTS), options.threads, plan, options.results, tell=_tell)
            case "search" | "local-search" | "final-selection" as command:
                run_search = {"search": search, "local-search": local_search, "final-selection": final_selection}[
                    command
                ]
                for dataset in options.dataset:
                    run_search(dataset, options.results, tell=_tell)
                recipes.write(results.read(options.results / LOG))
            case "serve":
                _serve(options)
            case _:  # one run, started by `run`
                print(execution.work(parse_run(sys.stdin.read()), options.target))
    except (LeapTSError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="leapts_bench", description="The paper's experiments.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="do the runs of a suite that are not done")
    run.add_argument("suite", choices=SUITES)
    run.add_argument("--workers", type=int, default=2, help="processes at a time, each with one thread")
    run.add_argument("--engine", choices=["local", "ray"], default="local", help="on this machine, or on a Ray cluster")
    run.add_argument("--address", help="of the Ray cluster; without it, one on this machine")
    run.add_argument("--only", nargs="+", metavar="DATASET", help="only these data sets")
    run.add_argument("--model", nargs="+", metavar="NAME", help="only these models: LeapTS, or baselines")
    run.add_argument("--horizon", nargs="+", type=int, metavar="STEPS", help="only these horizons")
    run.add_argument("--seed", nargs="+", type=int, help="only these seeds")
    run.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop a run that takes longer")
    status = commands.add_parser("status", help="show how many runs of each suite are done")
    table = commands.add_parser("table", help="render the pages and charts from the results, without training")
    table.add_argument("--out", type=Path, default=_ROOT / "docs", help="the documentation folder")
    look = commands.add_parser("search", help="search for recipes on validation windows")
    look.add_argument("dataset", nargs="*", help="without any: only rewrite the recipes from the log")
    near = commands.add_parser("local-search", help="try neighbors of recipes on several validation parts")
    near.add_argument("dataset", nargs="+")
    last = commands.add_parser("final-selection", help="compare the finalists of a short data set at all horizons")
    last.add_argument("dataset", nargs="+")
    fast = commands.add_parser("speed", help="measure speed beside the baselines; on an idle machine")
    fast.add_argument("points", nargs="*", metavar="POINT", help=f"these alone: {', '.join(POINTS)}")
    fast.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads, one after the other")
    fast.add_argument("--rounds", type=int, default=7, help="how often candidates take turns")
    fast.add_argument("--budget", type=float, default=300.0, help="seconds for each model in the race of training")
    fast.add_argument("--quick", action="store_true", help="small stand-ins, to see that it works; not for the page")
    load = commands.add_parser("serve", help="measure the server under load, beside an endpoint that does nothing")
    load.add_argument("--seconds", type=int, default=4, help="of each load; 0: only render the page")
    load.add_argument("--rounds", type=int, default=3, help="of each load")
    load.add_argument("--soak", type=int, default=0, metavar="SECONDS", help="of a long load, for the memory")
    load.add_argument("--examples", type=int, default=0, help="generated requests for each operation of the API")
    load.add_argument("--out", type=Path, default=_ROOT / "docs" / "benchmarks" / "serving.md")
    for command in (run, status, table, look, near, last, fast, load):
        command.add_argument("--results", type=Path, default=_RESULTS, help="the folder of the results")
    work = commands.add_parser("work")
    work.add_argument("target", type=Path)
    return parser


def _run(options: argparse.Namespace) -> int:
    wanted = [
        entry.run
        for entry in entries(options.suite)
        if (options.only is None or entry.run.dataset in options.only)
        and (options.model is None or entry.run.model_name in options.model)
        and (options.horizon is None or entry.run.horizon in options.horizon)
        and (options.seed is None or entry.run.seed in options.seed)
    ]
    missing = {run.dataset for run in wanted if not _is_here(run)}
    for name in sorted(missing):
        _tell(f"{name} is not in the data folder: its runs are left out")
    elsewhere = {run.model_name: needed for run in wanted if (needed := _package_needed(run)) is not None}
    for package in sorted(set(elsewhere.values())):
        names = ", ".join(sorted(name for name, needed in elsewhere.items() if needed == package))
        _tell(f"left out (pip install '{package}'): {names}")
    runs = [run for run in wanted if run.dataset not in missing and run.model_name not in elsewhere]
    target = options.results / f"{options.suite}.jsonl"
    if published := [run for run in execution.pending(runs, target) if isinstance(run, PublishedRun)]:
        hours = sum(execution.harness_of(run).estimated_seconds(run) for run in published) / 3600
        _tell(f"estimate: {hours:.1f} hours of one core for {len(published)} runs")
    if options.engine == "ray":
        failed = work_on_cluster(runs, target, address=options.address, tell=_tell)
    else:
        failed = execution.work_all(runs, target, workers=options.workers, time_limit=options.time_limit, tell=_tell)
    if failed:
        _tell(f"{failed} failed; the same command tries them again")
    return int(failed > 0)


def _serve(options: argparse.Namespace) -> None:
    if options.seconds:
        measure_server(
            options.results,
            seconds=options.seconds,
            rounds=options.rounds,
            soak=options.soak,
            examples=options.examples,
            tell=_tell,
        )
    write_table(options.results, options.out)


def _package_needed(run: Job) -> str | None:
    """Package that a run needs and that is not installed."""
    if isinstance(run, PublishedRun):
        needed: str | None = execution.harness_of(run).package_needed(run.model)
        return needed
    assert isinstance(run, Run), "a run of unknown kind"
    is_missing = isinstance(run.model, BaselineDesign) and run.model.name in BASELINES
    return "leapts[neural]" if is_missing and not is_available(run.model_name) else None


def _is_here(run: Job) -> bool:
    """Whether the data of a run are in the data folder."""
    if isinstance(run, PublishedRun):
        return all((data_folder() / file).exists() for file in execution.harness_of(run).files_of(run))
    dataset = find(run.dataset)
    return dataset.kind != "files" or stored_file(dataset, data_folder(), dataset.parts[0]) is not None


def _status(folder: Path) -> None:
    done = results.finished(folder)
    for suite in SUITES:
        keys = {entry.run.key for entry in entries(suite)}
        print(f"{suite:12} {len(keys & done.keys()):4} of {len(keys)} runs done")


def _tell(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
