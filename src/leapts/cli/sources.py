"""What DATA means: a file, standard input, or a set of the catalogue."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leapts import launch
from leapts.cli.options import Reading
from leapts.cli.terminal import note
from leapts.data.catalogue import Dataset, catalogue, find
from leapts.errors import ConfigError, DataError
from leapts.wording import listed, nearest, quoted

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.data.panel import Panel

PREFIX = "dataset:"


@dataclass(frozen=True)
class Source:
    """Data that were read.

    Attributes:
        panel: The series.
        season: Steps to a season: as the catalogue has it, or as people expect of the frequency.
    """

    panel: "Panel"
    season: int


def require_apart(output: Path, data: str | None) -> None:
    """Refuses to write over what is to be read.

    Raises:
        ConfigError: When both are one file.
    """
    if data is not None and output.exists() and output.resolve() == Path(data).resolve():
        raise ConfigError(f"{output} is the data, which would be lost; write to another file")


def require_outside(output: Path, model: Path) -> None:
    """Refuses to write into a model's folder.

    Raises:
        ConfigError: When the file would lie there.
    """
    if model.resolve() in output.resolve().parents:
        raise ConfigError(f"{output} is inside the model's folder, which holds the model alone; write it elsewhere")


def resolve(data: str) -> str | Dataset:
    """What the user named: a row of the catalogue, or a path (`-` is standard input).

    A file wins over a set of the same name; `dataset:NAME` always means the set.

    Raises:
        DataError: When it is neither.
    """
    if data.startswith(PREFIX):
        return find(data.removeprefix(PREFIX))
    if data == "-" or Path(data).exists():
        return data
    if data.casefold() in {name.casefold() for name in catalogue()}:
        return find(data)
    near = nearest(data, list(catalogue()))
    hint = f"did you mean the data set {near}?" if near else "leapts datasets list names the sets there are"
    raise DataError(f"{quoted(data)} is neither a file nor a data set; check the path ({hint})")


def read_source(data: str, reading: Reading) -> Source:
    """Read what the user named.

    Args:
        data: A path, `-`, a name in the catalogue, or `dataset:` and such a name.
        reading: How to read a file; sets of the catalogue are read by their own rules.

    Raises:
        DataError: When it is none of these, or cannot be used.
        ConfigError: When options for reading files are given with a set of the catalogue.
    """
    found = resolve(data)
    if isinstance(found, Dataset):
        if given := reading.changed():
            raise ConfigError(f"{found.name} is a data set with rules of its own; leave out {', '.join(given)}")
        return Source(load_set(found), found.season)
    from leapts.data.frequency import seasonal_period
    from leapts.data.validation import read_panel

    panel = read_panel(found, reading.panel_options())
    if panel.unused and launch.is_first():
        note(_on_unused(panel))
    return Source(panel, seasonal_period(panel.freq))


def read_for(model: "LeapTS", data: str) -> "Panel":
    """Read what the user named as a fitted model reads its data."""
    found = resolve(data)
    return model.read(load_set(found) if isinstance(found, Dataset) else found)


def load_set(dataset: Dataset) -> "Panel":
    """Load a set of the catalogue.

    Raises:
        DataError: When it is not on this computer, with the way to get it.
    """
    from leapts.data.loading import FOLDER_VARIABLE, load_dataset

    if dataset.kind == "files" and not os.environ.get(FOLDER_VARIABLE):
        raise DataError(
            f"{dataset.name} does not come with LeapTS: set {FOLDER_VARIABLE} to the folder that holds it "
            f"(leapts datasets fetch {dataset.name} --to FOLDER puts it there)"
        )
    return load_dataset(dataset)


def _on_unused(panel: "Panel") -> str:
    target = panel.style.target_col
    text = f"not used: {listed(panel.unused)}; only {quoted(target)} is forecast"
    return f"{text} (--layout wide takes each column for a series)" if panel.series == (target,) else text
