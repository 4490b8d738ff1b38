"""Load a data set of the catalogue as a `Panel`; never downloads."""

import io
import os
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
import torch

from leapts.config import Layout, ReadOptions
from leapts.data.panel import Panel
from leapts.data.validation import read_panel
from leapts.datasets.catalogue import Dataset, bundled_file, files_of, find, stored_file
from leapts.datasets.synthetic import simulate
from leapts.errors import DataError
from leapts.files import decompress, read_file
from leapts.messages import listed, quoted

FOLDER_VARIABLE = "LEAPTS_DATA"


def load(name: str, root: str | Path | None = None, *, part: str | None = None, seed: int = 0) -> Panel:
    """Load a data set by name.

    Its file is in the folder `root`, by default that of the environment variable `LEAPTS_DATA`. M4 has the parts
    `train`, the default, `test` and `naive2`. The seed is that of synthetic sets.

    Raises:
        DataError: When there is no such set, its file is missing, or has other contents.
    """
    return load_dataset(find(name), root, part=part, seed=seed)


def load_dataset(dataset: Dataset, root: str | Path | None = None, *, part: str | None = None, seed: int = 0) -> Panel:
    """Load a data set of the catalogue, see `load`."""
    if part is not None and part not in dataset.parts:
        raise DataError(f"{dataset.name} has no part {quoted(part)}; it has {listed(dataset.parts)}")
    if dataset.kind == "synthetic":
        simulation = simulate(dataset.name, seed=seed)
        return Panel.from_matrix(torch.from_numpy(simulation.values), series=simulation.series)
    wanted = part or dataset.parts[0]
    if dataset.kind == "bundled":
        with resources.as_file(bundled_file(dataset)) as path:
            panel = _read(dataset, path)
    else:
        panel = _read(dataset, _stored(dataset, data_folder(root), wanted))
    if wanted == dataset.parts[0]:
        _require_size(dataset, panel)
    return panel


def data_folder(root: str | Path | None = None) -> Path:
    """Return the folder of data sets: the given one, or that of `LEAPTS_DATA`.

    Raises:
        DataError: When neither is given.
    """
    named = root if root is not None else os.environ.get(FOLDER_VARIABLE)
    if not named:
        raise DataError(f"the folder of the data sets is unknown; pass it, or set {FOLDER_VARIABLE}")
    return Path(named).expanduser()


def _stored(dataset: Dataset, folder: Path, part: str) -> Path:
    path = stored_file(dataset, folder, part)
    if path is None:
        files = files_of(dataset, part)
        names = " or ".join(file.name for file in files)
        fetchable = any(file.url for file in files)
        hint = f"run: leapts datasets fetch {dataset.name}" if fetchable else f"get it from {dataset.page}"
        raise DataError(f"{dataset.name} is not in {folder} (looked for {names}); {hint}")
    return path


def _read(dataset: Dataset, path: Path) -> Panel:
    if path.name.endswith(".npz"):
        return _read_npz(path)
    if path.name.endswith(".txt.gz"):
        return _read_text_matrix(path)
    if dataset.length is None:
        return _read_m4_lines(path) if path.suffix == ".csv" else read_panel(path, _M4_OPTIONS)
    layout: Layout = "auto" if dataset.kind == "bundled" else "wide"
    return read_panel(path, ReadOptions(layout=layout, freq=dataset.freq, time=dataset.time))


_M4_OPTIONS = ReadOptions(id_col="id", time_col="t", layout="long", freq=1)


def _read_npz(path: Path) -> Panel:
    """Read traffic stored as [time, sensors, quantities]; the first quantity is the flow."""
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as arrays:
            flow = arrays["data"][..., 0]
    except (KeyError, ValueError, OSError, IndexError, zipfile.BadZipFile) as error:
        raise DataError(f"{path.name} holds no array 'data' of numbers ({error}); copy the file again") from error
    return Panel.from_matrix(torch.from_numpy(np.ascontiguousarray(flow.T, dtype=np.float64)))


def _read_text_matrix(path: Path) -> Panel:
    """Read comma-separated numbers, one line for each step, without header or timestamps."""
    content = decompress(read_file(path), path.name)
    try:
        matrix = np.loadtxt(io.BytesIO(content), delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{path.name} is not a matrix of numbers ({error}); copy the file again") from error
    return Panel.from_matrix(torch.from_numpy(np.ascontiguousarray(matrix.T)))


def _read_m4_lines(path: Path) -> Panel:
    """Read the CSV of M4: a header, then a line for each series with its name, its values and empty cells."""
    names, series = [], []
    for number, line in enumerate(read_file(path).decode("utf-8").splitlines()[1:], start=2):
        name, *cells = line.replace('"', "").rstrip(", ").split(",")
        try:
            series.append(np.array(cells, dtype=np.float64))
        except ValueError as error:
            raise DataError(f"{path.name}: line {number} holds text instead of numbers ({error})") from error
        names.append(name)
    lengths = [0, *(len(values) for values in series)]
    return Panel(
        values=torch.from_numpy(np.concatenate(series)),
        offsets=torch.tensor(lengths).cumsum(0),
        series=tuple(names),
        first=np.ones(len(names), dtype=np.int64),
        freq=1,
    )


def _require_size(dataset: Dataset, panel: Panel) -> None:
    if len(panel) == dataset.series and len(panel.values) == dataset.observations:
        return
    raise DataError(
        f"{dataset.name} has {dataset.series:,} series with {dataset.observations:,} values in all, but this "
        f"file has {len(panel):,} with {len(panel.values):,}; it is a part or another version: "
        f"get it from {dataset.page}"
    )
