"""A checkpoint restores what was saved; a damaged one or one of another run is refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from leapts.errors import ModelFileError
from leapts.model import LeapTSModel
from leapts.training import checkpoint
from leapts.training.checkpoint import FILE_NAME, Checkpoint
from leapts.training.early_stopping import TrainingReport, TrainingState
from tests.model.variants import make_model


def _trained(seed: int) -> tuple[LeapTSModel, torch.optim.Optimizer]:
    """A model and its optimizer after two steps."""
    model = make_model("none", seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (seed + 1))
    for step in range(2):
        generator = torch.Generator().manual_seed(seed + step)
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return model, optimizer


def _saved(folder: Path, fingerprint: str = "a run") -> tuple[Checkpoint, LeapTSModel, torch.optim.Optimizer]:
    model, optimizer = _trained(0)
    kept = {name: value + 1 for name, value in model.state_dict().items()}
    report = TrainingReport(20, 10, 0.5, False, [(10, 1.5)], [(10, 0.5)])
    file = Checkpoint(folder, fingerprint=fingerprint)
    file.save(model, optimizer, TrainingState(report, kept, checks_without_improvement=3))
    return file, model, optimizer


def test_a_part_has_its_own_file_and_is_discarded_with_the_run(tmp_path: Path) -> None:
    whole, model, optimizer = _saved(tmp_path)
    part = whole.part("teacher-1")
    assert part.read() == b""
    state = TrainingState(TrainingReport(), {}, checks_without_improvement=0)
    part.save(model, optimizer, state)
    assert part.path.is_relative_to(tmp_path)
    assert part.read() not in (b"", whole.read())
    with pytest.raises(ModelFileError, match="belongs to another run"):
        whole.part("teacher-2").restore(part.read(), model, optimizer)
    whole.discard()
    whole.discard()  # a second time, without files
    assert (whole.read(), part.read()) == (b"", b"")


def test_weights_optimizer_and_report_are_restored(tmp_path: Path) -> None:
    file, model, optimizer = _saved(tmp_path / "new" / "folder")
    other, its_optimizer = _trained(1)
    state = file.restore(file.read(), other, its_optimizer)
    assert state.report == TrainingReport(20, 10, 0.5, False, [(10, 1.5)], [(10, 0.5)])
    assert (state.checks_without_improvement, state.losses_since_check) == (3, [])
    for name, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
        assert torch.equal(state.kept[name], value + 1)
    moments, theirs = optimizer.state_dict()["state"], its_optimizer.state_dict()["state"]
    assert moments.keys() == theirs.keys()
    for number, ours in moments.items():
        assert {name: value.tolist() for name, value in ours.items()} == {
            name: value.tolist() for name, value in theirs[number].items()
        }
    assert its_optimizer.param_groups[0]["lr"] == 0.2  # the learning rate is an option, not part of the state


def test_no_file_reads_as_no_bytes_and_an_empty_file_is_damaged(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path, fingerprint="a run")
    assert file.read() == b""
    file.discard()
    (tmp_path / FILE_NAME).touch()
    assert file.read()
    with pytest.raises(ModelFileError, match="cannot be read as a checkpoint"):
        file.restore(file.read(), *_trained(0))
    file.discard()
    assert not (tmp_path / FILE_NAME).exists()


def test_a_checkpoint_of_another_run_or_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, model, optimizer = _saved(tmp_path)
    with pytest.raises(ModelFileError, match="belongs to another run"):
        Checkpoint(tmp_path, fingerprint="another").restore(file.read(), model, optimizer)
    monkeypatch.setattr(checkpoint, "_SCHEMA", 1)
    with pytest.raises(ModelFileError, match="was written by another version of LeapTS; resume with that one"):
        file.restore(file.read(), model, optimizer)


def test_a_checkpoint_names_its_schema(tmp_path: Path) -> None:
    file, _, _ = _saved(tmp_path)
    record, _ = file._parsed(file.read())
    assert record["schema"] == 3


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file, model, optimizer = _saved(tmp_path)
    content = file.read()
    for place in range(0, len(content), len(content) // 500):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        with pytest.raises(ModelFileError):
            file.restore(bytes(damaged), model, optimizer)
    for keep in (4, 8, 100, len(content) - 1):
        with pytest.raises(ModelFileError, match="cannot be read as a checkpoint"):
            file.restore(content[:keep], model, optimizer)


def test_tensors_under_other_names_or_without_a_record_are_refused(tmp_path: Path) -> None:
    file, model, optimizer = _saved(tmp_path)
    tensors = load(file.read())
    with pytest.raises(ModelFileError, match="cannot be read as a checkpoint"):
        file.restore(save(tensors), model, optimizer)
    swapped = dict(zip(tensors, reversed(list(tensors.values())), strict=True))
    assert checkpoint._digest(swapped, {}) != checkpoint._digest(tensors, {})
    renamed = {f"x{name}": value for name, value in tensors.items()}
    assert checkpoint._digest(renamed, {}) != checkpoint._digest(tensors, {})
    backwards = dict(reversed(list(tensors.items())))
    assert checkpoint._digest(backwards, {}) == checkpoint._digest(tensors, {})
