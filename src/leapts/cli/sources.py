"""Data named on the command line (a file, standard input or a data set), and checks of output files."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leapts.cli.options import changed_flags
from leapts.cli.terminal import note
from leapts.config import ReadOptions
from leapts.datasets.catalogue import Dataset, catalogue, find
from leapts.errors import ConfigError, DataError
from leapts.messages import listed, nearest, quoted
from leapts.training import launcher

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.data.panel import Panel

PREFIX = "dataset:"
PAGE = (".html", ".htm")


@dataclass(frozen=True)
class Source:
    """Series that were read, and their season length by the catalogue or the frequency."""

    panel: "Panel"
    season: int


def require_output(
    out: Path | None, suffixes: tuple[str, ...] = (), *, data: str | None = None, model: Path | None = None
) -> None:
    """Refuse an output file that cannot be written, that is the data, or that lies in the model folder.

    Args:
        out: The file; None is accepted.
        suffixes: Suffixes to choose from; by default those of a table.
        data: Argument of the command, which may be a file.
        model: Model folder.
    """
    if out is None:
        return
    from leapts.data.frames import SUFFIXES, require_writable

    require_writable(out, suffixes or SUFFIXES)
    if data is not None and out.exists() and out.resolve() == Path(data).resolve():
        raise ConfigError(f"{out} is the data file and would be overwritten; write to another file")
    if model is not None and model.resolve() in out.resolve().parents:
        raise ConfigError(f"{out} is inside the model folder {model}; write to another folder")


def read_source(data: str, read: ReadOptions) -> Source:
    """Read a file or a data set; data sets have their own read options, and no others are accepted."""
    found = _resolve(data)
    if isinstance(found, Dataset):
        if given := changed_flags(read):
            raise ConfigError(f"{found.name} is a data set with its own read options; leave out {', '.join(given)}")
        return Source(load_set(found), found.season)
    from leapts.data.frequency import seasonal_period
    from leapts.data.validation import read_panel

    panel = read_panel(found, read)
    _note_unused(panel)
    return Source(panel, seasonal_period(panel.freq))


def read_for(model: "LeapTS", data: str) -> "Panel":
    """Read data with the read options of a fitted model."""
    found = _resolve(data)
    if isinstance(found, Dataset):
        return load_set(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on unused columns, which the note below names
        panel = model.read(found)
    _note_unused(panel)
    return panel


def load_set(dataset: Dataset) -> "Panel":
    """Load a data set of the catalogue, or explain how to get it."""
    from leapts.datasets.loading import FOLDER_VARIABLE, load_dataset

    if dataset.kind == "files" and not os.environ.get(FOLDER_VARIABLE):
        raise DataError(
            f"{dataset.name} is not part of LeapTS: set {FOLDER_VARIABLE} to the folder that has it "
            f"(leapts datasets fetch {dataset.name} --to FOLDER downloads it)"
        )
    return load_dataset(dataset)


def _note_unused(panel: "Panel") -> None:
    """Print the names of columns that were read and are not used."""
    if panel.unused and launcher.is_first():
        target = panel.style.target_col
        wide = " (--layout wide reads each column as a series)" if panel.series == (target,) else ""
        note(f"not used: {listed(panel.unused)}; only {quoted(target)} is forecast{wide}")


def _resolve(data: str) -> str | Dataset:
    """Find the path or data set with a name; `-` is standard input.

    A file takes precedence over a data set of the same name; `dataset:NAME` always means the data set.
    """
    if data.startswith(PREFIX):
        return find(data.removeprefix(PREFIX))
    if data == "-" or Path(data).exists():
        return data
    if data.casefold() in {name.casefold() for name in catalogue()}:
        return find(data)
    near = nearest(data, list(catalogue()))
    hint = f"did you mean the data set {near}?" if near else "leapts datasets list shows all data sets"
    raise DataError(f"{quoted(data)} is neither a file nor a data set; check the path ({hint})")
