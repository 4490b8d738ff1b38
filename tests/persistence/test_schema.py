"""A model folder is validated: sizes before anything is read, fields before anything is built, then tensors."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.panel import FrameStyle
from leapts.errors import ModelFileError
from leapts.model.build import build_model
from leapts.persistence import schema
from leapts.persistence.schema import DataFields, FolderConfig, parse, regular_file, require_tensors, to_json
from leapts.training.early_stopping import TrainingReport

INPUT_SIZE = 6
MODEL = ModelConfig(h=3, input_size=INPUT_SIZE, n_series=2, hidden_size=4, control_size=2, summary_size=2)


def _config(**data: Any) -> FolderConfig:
    usual = {"series": ("a", "b"), "freq": "D", "timezone": None, "style": FrameStyle(time_type="timestamp[us]")}
    return FolderConfig(
        schema_version=schema.SCHEMA,
        params={},
        model=MODEL,
        training=TrainingConfig(max_steps=1, batch_size=1, val_check_steps=1),
        clusters=None,
        pad_short=False,
        data=DataFields(**{**usual, "timestamp_type": "datetime64[us]", **data}),
        report=TrainingReport(),
        auto_config=(),
        weights_sha256="0" * 64,
    )


def _tensors() -> dict[str, Tensor]:
    weights = {f"model.{name}": value for name, value in build_model(MODEL, seed=0).state_dict().items()}
    return weights | {
        "scaler.mean": torch.zeros(2, dtype=torch.float64),
        "scaler.std": torch.ones(2, dtype=torch.float64),
        "tail.first": torch.zeros(2, dtype=torch.int64),
        "tail.offsets": torch.tensor([0, INPUT_SIZE, INPUT_SIZE + 1]),
        "tail.values": torch.zeros(INPUT_SIZE + 1, dtype=torch.float64),
    }


def _announcing(end: int, *, size: int | None = None) -> bytes:
    """The start of a safetensors file whose tensors end there."""
    header = json.dumps({"__metadata__": {"x": "y"}, "a": {"data_offsets": [0, end]}, "b": {"data_offsets": [0, 1]}})
    return (len(header) if size is None else size).to_bytes(8, "little") + header.encode()


def test_a_file_as_long_as_it_says_is_read_and_no_longer_one(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    whole = _announcing(5) + b"12345"
    file.write_bytes(whole)
    assert regular_file(file) == whole
    file.write_bytes(whole + b"6")
    with pytest.raises(ModelFileError, match="longer than such a file can be"):
        regular_file(file)


def test_a_limit_that_is_given_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"12345")
    assert regular_file(file, 5) == b"12345"
    with pytest.raises(ModelFileError, match="longer than such a file can be"):
        regular_file(file, 4)


def test_of_nonsense_no_more_is_read_than_it_takes_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_MAX_HEADER", 64)
    file = tmp_path / "weights"
    nonsense = [b"\x05" + bytes(7) + b"nonsense", b"\x02" + bytes(7) + b"[]", b"\x07" + bytes(7) + b'{"a":1}']
    for start in nonsense:
        file.write_bytes(start.ljust(64))
        assert len(regular_file(file)) == 64
        file.write_bytes(start.ljust(65))
        with pytest.raises(ModelFileError, match="longer than such a file can be"):
            regular_file(file)


def test_a_header_is_believed_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    start = _announcing(5)
    size = len(start) - 8
    monkeypatch.setattr(schema, "_MAX_HEADER", size)
    assert schema._announced_size(start[:8], start[8:]) == len(start) + 5
    monkeypatch.setattr(schema, "_MAX_HEADER", size - 1)
    assert schema._announced_size(start[:8], start[8:]) == len(start)


def test_a_file_without_tensors_is_its_header() -> None:
    assert schema._announced_size((2).to_bytes(8, "little"), b"{}") == 10


def test_the_limits_are_what_they_are_said_to_be() -> None:
    assert schema.max_config_bytes(0) == 4 * 1024**2
    assert schema.max_config_bytes(10) == 4 * 1024**2 + 160
    assert schema._MAX_HEADER == 1024**2
    assert schema._MAX_WEIGHT == 1e9


def test_what_is_no_ordinary_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        regular_file(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"cannot be read \(No such file or directory\)"):
        regular_file(tmp_path / "nothing")


def test_an_error_without_words_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("odd")

    (tmp_path / "a").touch()
    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(ModelFileError, match=r"cannot be read \(odd\)"):
        regular_file(tmp_path / "a")


@pytest.mark.parametrize("version", ['"1"', "-5", "0", "true", "1.0", "null", "[1]"])
def test_a_schema_version_is_a_positive_integer(version: str) -> None:
    with pytest.raises(ModelFileError, match="not a LeapTS configuration"):
        parse(f'{{"schema": {version}}}'.encode(), Path("config.json"))


@pytest.mark.parametrize("content", [b"{}", b"[1]"])
def test_a_configuration_has_a_schema(content: bytes) -> None:
    with pytest.raises(ModelFileError, match="not a LeapTS configuration"):
        parse(content, Path("config.json"))
    assert parse(b'{"schema": 1}', Path("config.json")) == {"schema": 1}


def test_a_configuration_is_written_in_one_layout() -> None:
    assert to_json({"name": "\xfc", "more": [1]}) == '{\n "name": "\xfc",\n "more": [\n  1\n ]\n}'.encode()


SCORES = {"scores.scores": torch.zeros(4, 3), "scores.counts": torch.tensor([4])}


def test_tensors_are_exactly_those_of_the_model() -> None:
    require_tensors(_tensors(), _config())
    require_tensors({**_tensors(), **SCORES}, _config())
    require_tensors({**_tensors(), "tail.start_offsets": torch.tensor([0, 10**6])}, _config())
    for name in _tensors():
        less = {key: value for key, value in _tensors().items() if key != name}
        with pytest.raises(ValueError, match=f"{name} is missing"):
            require_tensors(less, _config())
    for name in ("another", "scores.any", "model.another", "scaler.deviation"):
        with pytest.raises(ValueError, match=f"{name} is missing, or unknown"):
            require_tensors({**_tensors(), **SCORES, name: torch.zeros(1)}, _config())
    for name in SCORES:
        with pytest.raises((ValueError, KeyError), match=r"scores\."):
            require_tensors({**_tensors(), name: SCORES[name]}, _config())


@pytest.mark.parametrize("name", [name for name in {**_tensors(), **SCORES} if not name.startswith("model.")])
def test_a_tensor_of_another_shape_or_type_is_refused(name: str) -> None:
    tensors = {**_tensors(), **SCORES}
    for other in (tensors[name].to(torch.float16), tensors[name][None, None, None]):
        with pytest.raises(ValueError, match=f"{name} is torch"):
            require_tensors({**tensors, name: other}, _config())
    if name not in ("tail.values", *SCORES):
        with pytest.raises(ValueError, match=f"{name} is torch"):
            require_tensors({**tensors, name: torch.cat([tensors[name]] * 2)}, _config())


def _changed(name: str, place: int, value: float) -> Mapping[str, Tensor]:
    tensors = {**_tensors(), "tail.start_offsets": torch.tensor([0, 0])}
    tensors[name] = tensors[name].clone()
    tensors[name].view(-1)[place] = value
    return tensors


WEIGHT = next(name for name in _tensors() if name.startswith("model."))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [(WEIGHT, 0, 9e8), ("tail.values", 0, -1e30), ("scaler.std", 1, 0.5), ("tail.start_offsets", 1, 10**6)],
)
def test_numbers_that_a_fit_may_leave_are_accepted(name: str, place: int, value: float) -> None:
    require_tensors(_changed(name, place, value), _config())


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        (WEIGHT, -1, 1.1e9),
        (WEIGHT, -1, torch.nan),
        ("tail.values", 3, torch.nan),
        ("tail.values", 3, -torch.inf),
        ("tail.values", 3, 1e300),
        ("scaler.mean", 1, torch.inf),
        ("scaler.mean", 1, 1e300),
        ("scaler.std", 1, 0.0),
        ("scaler.std", 1, 1e300),
        ("tail.offsets", 0, 1),
        ("tail.offsets", 2, INPUT_SIZE + 2),
        ("tail.offsets", 1, INPUT_SIZE + 1),
        ("tail.offsets", 1, 0),
        ("tail.start_offsets", 0, -1),
        ("tail.start_offsets", 0, 10**6 + 1),
        ("tail.first", 1, 2**63 - 1),
        ("tail.first", 1, -(2**63)),
        ("tail.first", 1, 253402300799000000),  # the last second of the year 9999
    ],
)
def test_numbers_that_no_fit_leaves_are_refused(name: str, place: int, value: float) -> None:
    message = "later than any possible timestamp" if value == 253402300799000000 else name
    with pytest.raises(ValueError, match=message):
        require_tensors(_changed(name, place, value), _config())


def test_integer_timestamps_leave_room_for_a_forecast() -> None:
    steps = _config(freq=1, timestamp_type="int64", style=FrameStyle())
    require_tensors(_changed("tail.first", 1, 2**62), steps)
    with pytest.raises(ValueError, match="later than any possible timestamp"):
        require_tensors(_changed("tail.first", 1, 2**63 - 3), steps)


def test_timestamps_lie_on_the_calendar_of_the_frequency() -> None:
    with pytest.raises(ValueError, match="1970-01-01"):
        require_tensors(_tensors(), _config(freq="ME"))


def test_a_series_longer_than_the_input_is_refused() -> None:
    longer = torch.zeros(INPUT_SIZE + 2, dtype=torch.float64)
    offsets = torch.tensor([0, INPUT_SIZE + 1, INPUT_SIZE + 2])
    with pytest.raises(ValueError, match=r"tail\.offsets"):
        require_tensors({**_tensors(), "tail.values": longer, "tail.offsets": offsets}, _config())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("series", ()),
        ("series", ("a", "a")),
        ("series", ("a", "")),
        ("series", ("a", 1)),
        ("series", (1, 2**64)),
        ("series", ("a", "b", "c")),
        ("freq", 1.5),
        ("freq", "nonsense"),
        ("freq", "999999999999D"),
        ("freq", 1),
        ("timezone", 1),
        ("timezone", "No/Where"),
        ("timezone", "/etc/passwd"),
        ("timestamp_type", "float64"),
        ("timestamp_type", "int64"),
        ("style", FrameStyle(id_col="ds")),
        ("style", FrameStyle(target_col="")),
        ("style", FrameStyle(time_type="int65")),
        ("style", {"kind": "pandas", "evil": 1}),
        ("another", 1),
    ],
)
def test_fields_about_the_data_are_validated(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name if name not in ("timestamp_type",) else "timestamp"):
        _config(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema", -5),
        ("schema", True),
        ("schema", schema.SCHEMA + 1),
        ("pad_short", "yes"),
        ("model", {"h": -1, "input_size": 2}),
        ("training", {"max_steps": 0, "batch_size": 1, "val_check_steps": 1}),
        ("report", {"steps": "many"}),
        ("report", {"another": 1}),
        ("auto_config", [{"option": "h", "value": 1}]),
        ("weights_sha256", "0"),
        ("another", 1),
    ],
)
def test_every_field_is_validated(name: str, value: Any) -> None:
    good = _config().model_dump(mode="json", by_alias=True)
    assert FolderConfig.model_validate_json(json.dumps(good)) == _config()
    with pytest.raises(ValueError, match=name):
        FolderConfig.model_validate_json(json.dumps({**good, name: value}))
    if name != "another":
        with pytest.raises(ValueError, match=name):
            FolderConfig.model_validate_json(json.dumps({key: one for key, one in good.items() if key != name}))
