"""Checkpoints: one file with everything that training needs to resume exactly."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from leapts.errors import ModelFileError
from leapts.files import write_file
from leapts.model import LeapTSModel
from leapts.training.early_stopping import TrainingReport, TrainingState

FILE_NAME = "checkpoint.safetensors"
_PARTS = "parts"
_SCHEMA = 3  # schema 1 sampled other batches; the digest of schema 2 did not cover the record


def kept_files(folder: Path) -> list[Path]:
    """List the checkpoint files of a run: its own and those of its parts."""
    return [path for path in (folder / FILE_NAME, *folder.glob(f"{_PARTS}/*/{FILE_NAME}")) if path.exists()]


class Checkpoint:
    """The checkpoint of one run in a folder, replaced atomically at every validation check."""

    def __init__(self, folder: str | Path, *, fingerprint: str) -> None:
        """Set the location of the checkpoint.

        Args:
            folder: The folder of the file; created when first written.
            fingerprint: A digest of the options and the data; a checkpoint with another one is refused.
        """
        self.path = Path(folder) / FILE_NAME
        self.fingerprint = fingerprint

    def part(self, name: str) -> "Checkpoint":
        """Return the checkpoint of a part of the run, such as one teacher, in a subfolder."""
        return Checkpoint(self.path.parent / _PARTS / name, fingerprint=f"{self.fingerprint}/{name}")

    def read(self) -> bytes:
        """Read the file; without a file, return no bytes."""
        try:
            return self.path.read_bytes() or b"\0"  # an empty file is damaged, not absent
        except FileNotFoundError:
            return b""

    def discard(self) -> None:
        """Delete the checkpoint and those of its parts."""
        for path in kept_files(self.path.parent):
            path.unlink(missing_ok=True)

    def save(self, model: LeapTSModel, optimizer: torch.optim.Optimizer, state: TrainingState) -> None:
        """Replace the checkpoint by the current state."""
        tensors: dict[str, Tensor] = {f"model.{name}": value for name, value in model.state_dict().items()}
        tensors |= {f"kept.{name}": value for name, value in state.kept.items()}
        for number, moments in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
        tensors = {name: value.contiguous() for name, value in tensors.items()}
        record = {
            "schema": _SCHEMA,
            "fingerprint": self.fingerprint,
            "report": state.report.to_dict(),
            "checks_without_improvement": state.checks_without_improvement,
        }
        record["sha256"] = _digest(tensors, record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.path, save(tensors, metadata={"record": json.dumps(record)}))

    def restore(self, content: bytes, model: LeapTSModel, optimizer: torch.optim.Optimizer) -> TrainingState:
        """Restore model and optimizer from the bytes that `read` returned, here or in another process.

        Raises:
            ModelFileError: When the content is damaged, or belongs to a run with other options or data.
        """
        record, tensors = self._parsed(content)
        if record["fingerprint"] != self.fingerprint:
            raise ModelFileError(
                f"{self.path} belongs to another run: the options or the data differ; "
                "resume with the same ones, or choose another folder"
            )
        model.load_state_dict(_under("model.", tensors))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _under("optimizer.", tensors).items():
            number, _, moment = name.partition(".")
            moments.setdefault(int(number), {})[moment] = value
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        report = TrainingReport.from_dict(record["report"])
        return TrainingState(report, _under("kept.", tensors), record["checks_without_improvement"])

    def _parsed(self, content: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
        try:
            tensors = load(content)
            # A file starts with the length of its header and the header itself, which is JSON.
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            record = json.loads(header["__metadata__"]["record"])
            if record["schema"] != _SCHEMA:
                raise ModelFileError(
                    f"{self.path} was written by another version of LeapTS; resume with that one, or choose another "
                    "folder"
                )
            if record.pop("sha256") != _digest(tensors, record):
                raise ValueError("its content does not match its digest")
            return record, tensors
        except (SafetensorError, KeyError, ValueError) as error:
            raise ModelFileError(
                f"{self.path} cannot be read as a checkpoint ({error}); start again without resuming"
            ) from error


def _digest(tensors: dict[str, Tensor], record: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
