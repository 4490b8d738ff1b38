"""`leapts datasets list`, `fetch` and `make`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.terminal import download_bar, help_if_alone, say, show_table, write_json
from leapts.data.catalogue import Dataset, catalogue, find
from leapts.errors import DataError
from leapts.wording import listed

app = typer.Typer(
    help="The data sets LeapTS knows.",
    epilog="Example:  leapts datasets list",
    invoke_without_command=True,
    rich_markup_mode=None,
)
LIST_EXAMPLE = """\b
Examples:
  leapts datasets list
  leapts datasets list --json
"""
FETCH_EXAMPLE = """\b
Examples:
  leapts datasets fetch ETTh1 --to data/
  leapts datasets fetch ETTh1 --from downloads/ --to data/
"""
MAKE_EXAMPLE = """\b
Example:
  leapts datasets make Scenario2 --out brusselator.parquet --steps 2000
"""


@app.callback()
def root(context: typer.Context) -> None:
    """The data sets LeapTS knows."""
    help_if_alone(context)


@app.command("list", epilog=LIST_EXAMPLE)
def list_sets(json: options.Json = False, debug: options.Debug = False) -> None:  # noqa: ARG001
    """List the data sets, with their size and licence."""
    rows = list(catalogue().values())
    if json:
        write_json({"datasets": [_as_record(row) for row in rows]})
        return
    show_table(
        ["name", "kind", "domain", "series", "steps", "values", "every", "licence"],
        [
            (row.name, row.kind, row.domain, row.series, row.length, row.observations, row.freq, row.licence)
            for row in rows
        ],
    )


@app.command("fetch", epilog=FETCH_EXAMPLE)
def fetch_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from leapts datasets list.")],
    from_dir: Annotated[
        Path | None, typer.Option("--from", help="A folder that has the files already; nothing is downloaded then.")
    ] = None,
    to_dir: Annotated[
        Path | None, typer.Option("--to", envvar="LEAPTS_DATA", help="The folder to put them in; made if need be.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001
) -> None:
    """Download a data set, or take it from a folder; new files are checked where a checksum was published."""
    from leapts.data.fetch import fetch

    dataset = find(name)
    if to_dir is None and dataset.kind == "files":
        raise DataError("where should the files go? give --to FOLDER, or set LEAPTS_DATA")
    with download_bar(dataset.name) as bar:
        paths = fetch(dataset, to_dir or Path(), from_dir=from_dir, progress=bar)
    if json:
        write_json({"name": dataset.name, "files": [str(path) for path in paths]})
        return
    for path in paths:
        say(str(path))


@app.command("make", epilog=MAKE_EXAMPLE)
def make_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A scenario: Scenario1, Scenario2 or Scenario3.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    steps: Annotated[int | None, typer.Option(min=1, help="How many values of each series. [as in the paper]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the initial states, the shocks and the noise.")] = 0,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001
) -> None:
    """Simulate one of the paper's synthetic scenarios into a file."""
    dataset = find(name)
    if dataset.kind != "synthetic":
        scenarios = listed(row.name for row in catalogue().values() if row.kind == "synthetic")
        raise DataError(f"{dataset.name} is not simulated; there are {scenarios}")
    import torch

    from leapts.data.frames import panel_frame
    from leapts.data.panel import Panel
    from leapts.data.synthetic import PAPER_STEPS, simulate
    from leapts.data.writing import require_writable, write_frame

    require_writable(out)
    simulation = simulate(dataset.name, seed=seed, steps=steps or PAPER_STEPS)
    panel = Panel.from_matrix(torch.from_numpy(simulation.values), series=simulation.series)
    write_frame(panel_frame(panel), out)
    if json:
        write_json({"name": dataset.name, "series": len(panel), "steps": simulation.values.shape[1], "file": str(out)})
        return
    say(str(out))


def _as_record(row: Dataset) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind,
        "domain": row.domain,
        "series": row.series,
        "length": row.length,
        "observations": row.observations,
        "freq": row.freq,
        "season": row.season,
        "input_size": row.input_size,
        "horizons": row.horizons,
        "long_horizons": row.long_horizons,
        "licence": row.licence,
        "page": row.page,
        "note": row.note,
    }
