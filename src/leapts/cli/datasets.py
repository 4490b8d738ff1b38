"""`leapts datasets list`, `fetch` and `make`."""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import download_bar, say, show_table, write_json
from leapts.datasets.catalogue import catalogue, find
from leapts.errors import DataError
from leapts.messages import listed

app = typer.Typer(epilog="Example:  leapts datasets list", invoke_without_command=True, rich_markup_mode=None)
# Columns of `list`, and the further fields of its JSON.
COLUMNS = ("name", "kind", "domain", "series", "length", "observations", "freq", "licence")
FIELDS = (*COLUMNS[:-1], "season", "input_size", "horizons", "long_horizons", "licence", "page", "note")
LIST_EXAMPLE = "\b\nExamples:\n  leapts datasets list\n  leapts datasets list --json"
FETCH_EXAMPLE = """\b
Examples:
  leapts datasets fetch ETTh1 --to data/
  leapts datasets fetch ETTh1 --from downloads/ --to data/
"""
MAKE_EXAMPLE = "\b\nExample:\n  leapts datasets make Scenario2 --out brusselator.parquet --steps 2000"
_FROM, _TO = "Folder with the files; nothing is downloaded.", "Folder to write to; created if missing."


@app.callback()
def root(context: typer.Context) -> None:
    """Data sets: list, download, simulate."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", epilog=LIST_EXAMPLE)
@options.shared_options
def list_sets(json: options.Json = False) -> None:
    """List the data sets, with their size and licence."""
    rows = list(catalogue().values())
    if json:
        write_json({"datasets": [{name: getattr(row, name) for name in FIELDS} for row in rows]})
    else:
        show_table(COLUMNS, [[getattr(row, name) for name in COLUMNS] for row in rows])


@app.command("fetch", epilog=FETCH_EXAMPLE)
@options.shared_options
def fetch_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a data set, see leapts datasets list.")],
    from_dir: Annotated[Path | None, typer.Option("--from", help=_FROM)] = None,
    to_dir: Annotated[Path | None, typer.Option("--to", envvar="LEAPTS_DATA", help=_TO)] = None,
    json: options.Json = False,
) -> None:
    """Download a data set or copy it from a folder, and verify its checksum where one was published."""
    from leapts.datasets.download import fetch

    dataset = find(name)
    if to_dir is None and dataset.kind == "files":
        raise DataError(f"{dataset.name}: give the folder to write to with --to, or set LEAPTS_DATA")
    with download_bar(dataset.name) as bar:
        paths = fetch(dataset, to_dir or Path(), from_dir=from_dir, progress=bar)
    if json:
        write_json({"name": dataset.name, "files": list(paths)})
        return
    for path in paths:
        say(str(path))


@app.command("make", epilog=MAKE_EXAMPLE)
@options.shared_options
def make_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Scenario1, Scenario2 or Scenario3.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV or Parquet file to write.")],
    steps: Annotated[int | None, typer.Option(min=1, help="Length of each series. [as in the paper]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of initial states, shocks and noise.")] = 0,
    json: options.Json = False,
) -> None:
    """Simulate a synthetic scenario of the paper and write it to a file."""
    dataset = find(name)
    if dataset.kind != "synthetic":
        scenarios = listed(row.name for row in catalogue().values() if row.kind == "synthetic")
        raise DataError(f"{dataset.name} is not a synthetic scenario; there are {scenarios}")
    import torch

    from leapts.data.frames import panel_frame, write_frame
    from leapts.data.panel import Panel
    from leapts.datasets.synthetic import PAPER_STEPS, simulate

    options.require_output(out)
    simulation = simulate(dataset.name, seed=seed, steps=steps or PAPER_STEPS)
    panel = Panel.from_matrix(torch.from_numpy(simulation.values), series=simulation.series)
    write_frame(panel_frame(panel), out)
    if json:
        write_json({"name": dataset.name, "series": len(panel), "steps": simulation.values.shape[1], "file": out})
    else:
        say(str(out))
