"""What a model folder may hold: sizes before anything is read, shapes before anything is built, numbers after."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from leapts.config import ModelConfig
from leapts.data.panel import FrameStyle
from leapts.errors import LeapTSError, ModelFileError
from leapts.model.build import build_model
from leapts.persistence import schema as contents
from leapts.persistence.schema import (
    Contents,
    DataPart,
    laid_out,
    parse,
    regular_file,
    require_numbers,
    require_shapes,
)

LOOKBACK = 6
CONFIG = ModelConfig(h=3, input_size=LOOKBACK, n_series=2, hidden_size=4, control_size=2, summary_size=2)


def _contents(**data: Any) -> Contents:
    part = {"series": ("a", "b"), "freq": "D", "zone": None, "style": FrameStyle(), "stamps": "datetime64[us]"}
    return Contents(
        params={},
        model={},
        training={},
        clusters=None,
        pad_short=False,
        data=DataPart(**{**part, **data}),
        report={},
        auto_config=(),
        weights_sha256="",
    )


def _tensors() -> dict[str, Tensor]:
    weights = {f"model.{name}": value for name, value in build_model(CONFIG, seed=0).state_dict().items()}
    return weights | {
        "scaler.mean": torch.zeros(2, dtype=torch.float64),
        "scaler.deviation": torch.ones(2, dtype=torch.float64),
        "tail.first": torch.zeros(2, dtype=torch.int64),
        "tail.offsets": torch.tensor([0, LOOKBACK, LOOKBACK + 1]),
        "tail.values": torch.zeros(LOOKBACK + 1, dtype=torch.float64),
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
    monkeypatch.setattr(contents, "_MAX_HEADER", 64)
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
    monkeypatch.setattr(contents, "_MAX_HEADER", size)
    assert contents._announced_size(start[:8], start[8:]) == len(start) + 5
    monkeypatch.setattr(contents, "_MAX_HEADER", size - 1)
    assert contents._announced_size(start[:8], start[8:]) == len(start)


def test_a_file_without_tensors_is_its_header() -> None:
    assert contents._announced_size((2).to_bytes(8, "little"), b"{}") == 10


def test_the_limits_are_what_they_are_said_to_be() -> None:
    assert contents.max_config_bytes(0) == 4 * 1024**2
    assert contents.max_config_bytes(10) == 4 * 1024**2 + 160
    assert contents._MAX_HEADER == 1024**2
    assert contents._MAX_WEIGHT == 1e9


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


@pytest.mark.parametrize("content", [b"{}", b"[1]", b'{"schema": "1"}'])
def test_a_configuration_has_a_schema(content: bytes) -> None:
    with pytest.raises(ModelFileError, match="not a LeapTS configuration"):
        parse(content, Path("config.json"))
    assert parse(b'{"schema": 1}', Path("config.json")) == {"schema": 1}


def test_the_tensors_are_exactly_those_of_the_model() -> None:
    require_shapes(_tensors(), CONFIG, _contents())
    require_shapes({**_tensors(), "scores.any": torch.zeros(1)}, CONFIG, _contents())
    for name in _tensors():
        less = {key: value for key, value in _tensors().items() if key != name}
        with pytest.raises((ValueError, KeyError), match=name):
            require_shapes(less, CONFIG, _contents())
    with pytest.raises(ValueError, match="another is missing, or too much"):
        require_shapes({**_tensors(), "another": torch.zeros(1)}, CONFIG, _contents())


@pytest.mark.parametrize("name", [name for name in _tensors() if not name.startswith("model.")])
def test_a_tensor_of_another_shape_or_type_is_refused(name: str) -> None:
    longer = {**_tensors(), name: torch.cat([_tensors()[name], _tensors()[name]])}
    other = {**_tensors(), name: _tensors()[name].to(torch.float16)}
    for tensors in [other] if name == "tail.values" else [longer, other]:
        with pytest.raises(ValueError, match=f"{name} is torch"):
            require_shapes(tensors, CONFIG, _contents())


@pytest.mark.parametrize(("name", "value"), [("freq", "nonsense"), ("zone", "No/Where"), ("zone", "A B")])
def test_frequency_and_zone_are_looked_at(name: str, value: str) -> None:
    require_shapes(_tensors(), CONFIG, _contents(zone="Europe/Berlin"))
    with pytest.raises((LeapTSError, ValueError), match=value):
        require_shapes(_tensors(), CONFIG, _contents(**{name: value}))


def test_a_zone_that_cannot_be_used_is_refused_even_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "is_timezone", lambda _: True)
    with pytest.raises((LookupError, ValueError), match="No/Where"):
        require_shapes(_tensors(), CONFIG, _contents(zone="No/Where"))


@pytest.mark.parametrize("names", [("a",), (7,)])
def test_one_series_is_enough(names: tuple[str | int, ...]) -> None:
    assert _contents(series=names).data.series == names


def test_a_configuration_is_laid_out_for_people_in_their_own_letters() -> None:
    assert laid_out({"name": "ü", "more": [1]}) == '{\n "name": "ü",\n "more": [\n  1\n ]\n}'.encode()


def _changed(name: str, place: int, value: float) -> dict[str, Tensor]:
    tensors = _tensors()
    tensors[name] = tensors[name].clone()
    tensors[name].view(-1)[place] = value
    return tensors


def test_numbers_that_a_fit_may_leave_are_accepted() -> None:
    weight = next(name for name in _tensors() if name.startswith("model."))
    require_numbers(_tensors(), LOOKBACK)
    require_numbers(_changed(weight, 0, 9e8), LOOKBACK)
    require_numbers(_changed("tail.values", 0, -1e30), LOOKBACK)
    require_numbers(_changed("scaler.deviation", 1, 0.5), LOOKBACK)
    require_numbers({**_tensors(), "scores.any": torch.tensor([torch.inf])}, LOOKBACK)
    require_numbers({**_tensors(), "tail.skipped": torch.tensor([0, 10**6])}, LOOKBACK)


@pytest.mark.parametrize("steps", [-1, 10**6 + 1])
def test_steps_that_no_fit_skips_are_refused(steps: int) -> None:
    with pytest.raises(ValueError, match=r"tail\.skipped does not count steps"):
        require_numbers({**_tensors(), "tail.skipped": torch.tensor([0, steps])}, LOOKBACK)


@pytest.mark.parametrize("skipped", [torch.zeros(3, dtype=torch.int64), torch.zeros(2)])
def test_skipped_steps_are_one_number_for_each_series(skipped: Tensor) -> None:
    require_shapes({**_tensors(), "tail.skipped": torch.zeros(2, dtype=torch.int64)}, CONFIG, _contents())
    with pytest.raises(ValueError, match=r"tail\.skipped is"):
        require_shapes({**_tensors(), "tail.skipped": skipped}, CONFIG, _contents())


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("tail.values", 3, torch.nan, "no number"),
        ("tail.values", 3, -torch.inf, "no number"),
        ("scaler.mean", 1, torch.inf, "no number"),
        ("scaler.deviation", 1, 0.0, "not above zero"),
        ("tail.offsets", 0, 1, "do not part"),
        ("tail.offsets", 2, LOOKBACK + 2, "do not part"),
        ("tail.offsets", 1, LOOKBACK + 1, "do not part"),
        ("tail.offsets", 1, 0, "do not part"),
    ],
)
def test_numbers_that_no_fit_leaves_are_refused(name: str, place: int, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        require_numbers(_changed(name, place, value), LOOKBACK)


@pytest.mark.parametrize("value", [1e9, -1e9, torch.nan])
def test_weights_beyond_any_fit_are_refused(value: float) -> None:
    weight = next(name for name in _tensors() if name.startswith("model."))
    with pytest.raises(ValueError, match="far too large"):
        require_numbers(_changed(weight, -1, value), LOOKBACK)


def test_a_series_longer_than_the_look_back_is_refused() -> None:
    with pytest.raises(ValueError, match="do not part"):
        require_numbers(_tensors(), LOOKBACK - 1)


@pytest.mark.parametrize(
    ("name", "value"), [("series", ()), ("series", ["a", "b"]), ("zone", 1), ("stamps", "float64"), ("freq", 1.5)]
)
def test_the_part_about_the_data_is_strict(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        _contents(**{name: value})


def test_contents_are_strict_and_stay_as_they_are() -> None:
    made = _contents()
    with pytest.raises(ValueError, match="frozen"):
        made.pad_short = True
    with pytest.raises(ValueError, match="frozen"):
        made.data.freq = 2
    with pytest.raises(ValueError, match="pad_short"):
        Contents.model_validate({**made.model_dump(), "pad_short": "yes"})
