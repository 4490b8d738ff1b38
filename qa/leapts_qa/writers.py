"""Everything that LeapTS writes and must not lose, as a sequence of versions."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from leapts import LeapTS
from leapts.data.frames import write_frame
from leapts.datasets.catalogue import Dataset, find
from leapts.datasets.download import fetch
from leapts.persistence.save import CARD
from leapts.report.page import write_report
from leapts.training.checkpoint import FILE_NAME, Checkpoint
from leapts.training.early_stopping import TrainingState
from leapts_bench import results
from leapts_qa.samples import forecaster, waves

FEW, MANY = 4, 24  # versions: the first exists before the test, the others are written one by one


class Operation(ABC):
    """Writes versions to a folder, each replacing the previous one or next to it.

    Attributes:
        replaces: Whether a version replaces the previous one.
        versions: Number of versions.
    """

    replaces = True

    def __init__(self, versions: int = FEW) -> None:
        self.versions = versions

    @abstractmethod
    def put(self, folder: Path, version: int) -> None:
        """Write a version."""

    @abstractmethod
    def state(self, folder: Path) -> str:
        """Read the current content; empty without one. Raise if it is damaged."""

    def leftovers(self, folder: Path) -> list[str]:
        """List names that belong to no version."""
        return sorted(
            path.name for path in folder.iterdir() if path.name.startswith(".") or path.name.endswith(".part")
        )

    def states(self, folder: Path) -> list[str]:
        """Return the content before the first version, and after each."""
        found = [self.state(folder)]
        for version in range(self.versions):
            self.put(folder, version)
            found.append(self.state(folder))
        return found


@lru_cache(maxsize=MANY)
def _model(version: int) -> LeapTS:
    return forecaster(random_seed=version + 1).fit(waves())


class Save(Operation):
    """Save a model over another."""

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        _model(version).save(folder / "model")

    def state(self, folder: Path) -> str:  # noqa: D102
        if not (folder / "model").exists():
            return ""
        loaded = LeapTS.load(folder / "model")  # refuses a mixed pair of configuration and weights
        weights = b"".join(value.numpy().tobytes() for value in loaded.predictor_.model.state_dict().values())
        card = (folder / "model" / CARD).read_bytes()
        return f"{loaded.random_seed} {hashlib.sha256(weights).hexdigest()} {hashlib.sha256(card).hexdigest()}"


class SaveCheckpoint(Operation):
    """Save a checkpoint of training."""

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        model = _model(version).predictor_.model
        optimizer = torch.optim.Adam(model.parameters())
        state = TrainingState.fresh(model)
        state.report.steps = version
        Checkpoint(folder, fingerprint="same").save(model, optimizer, state)

    def state(self, folder: Path) -> str:  # noqa: D102
        checkpoint = Checkpoint(folder, fingerprint="same")
        if not (folder / FILE_NAME).exists():
            return ""
        model = _model(0).predictor_.model
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        try:
            return str(checkpoint.restore(checkpoint.read(), model, torch.optim.Adam(model.parameters())).report.steps)
        finally:
            model.load_state_dict(kept)


class Append(Operation):
    """Append a line to a results file."""

    replaces = False

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        results.append(folder / "results.jsonl", {"version": version, "text": "x" * 9000})

    def state(self, folder: Path) -> str:  # noqa: D102
        return str([line["version"] for line in results.read(folder / "results.jsonl")])


class Fetch(Operation):
    """Copy data sets from another folder; existing files stay, so every version is a new file."""

    replaces = False

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        source = folder.parent / f"{folder.name}-source"
        if version == 0:
            source.mkdir(exist_ok=True)
            for number in range(self.versions):
                (source / _numbered(number).files[0].name).write_bytes(_content(number))
        fetch(_numbered(version), folder, from_dir=source)

    def state(self, folder: Path) -> str:  # noqa: D102
        whole = []
        for version in range(self.versions):
            path = folder / _numbered(version).files[0].name
            if path.exists():
                if path.read_bytes() != _content(version):
                    raise ValueError(f"{path.name} is not what was fetched")
                whole.append(version)
        return str(whole)


def _content(version: int) -> bytes:
    return f"version {version}\n".encode() * 20_000


def _numbered(version: int) -> Dataset:
    """Create a data set of one file with a checksum."""
    dataset = find("ETTh1")
    checksum = f"sha256:{hashlib.sha256(_content(version)).hexdigest()}"
    file = replace(dataset.files[0], name=f"set-{version}.csv", checksum=checksum, part=dataset.parts[0])
    return replace(dataset, files=(file,))


class Report(Operation):
    """Write a report over another."""

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        write_report(_model(0), waves(), folder / "report.html", title=f"version {version}", cutoffs=2)

    def state(self, folder: Path) -> str:  # noqa: D102
        path = folder / "report.html"
        if not path.exists():
            return ""
        text = path.read_text()
        if not text.rstrip().endswith("</html>"):
            raise ValueError("report.html is cut off")
        return text.partition("<title>")[2].partition("</title>")[0]


class Forecast(Operation):
    """Write a table over another."""

    def put(self, folder: Path, version: int) -> None:  # noqa: D102
        write_frame(waves(seed=version), folder / "forecast.csv")

    def state(self, folder: Path) -> str:  # noqa: D102
        path = folder / "forecast.csv"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


OPERATIONS: dict[str, Callable[[int], Operation]] = {
    "save": Save,
    "checkpoint": SaveCheckpoint,
    "append": Append,
    "fetch": Fetch,
    "report": Report,
    "forecast": Forecast,
}
