"""A saved model is the model; a damaged folder is refused, never believed."""

import hashlib
import itertools
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import safetensors.torch
import torch

from leapts import LeapTS, ModelFileError
from leapts.files import write_folder
from leapts.persistence import save as folder
from leapts.persistence.save import CARD, CONFIG, WEIGHTS
from leapts.persistence.schema import SCHEMA
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, make_forecaster, make_frame

CLUSTERED: dict[str, Any] = {"model": {"state": {"kind": "cde", "clusters": 2}, "hidden_size": 8}}


@pytest.fixture(scope="session")
def model() -> LeapTS:
    return make_forecaster(**MULTIVARIATE).fit(make_frame())


@pytest.fixture
def saved(model: LeapTS, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("kind", [MULTIVARIATE, UNIVARIATE, CLUSTERED], ids=["multivariate", "univariate", "clustered"])
def test_a_loaded_model_forecasts_the_same_bits(kind: dict[str, Any], tmp_path: Path) -> None:
    model = make_forecaster(**kind).fit(make_frame())
    model.save(tmp_path / "model")
    for _ in range(2):
        loaded = LeapTS.load(tmp_path / "model")
        forecast, trace = model.predict(level=[80, 90], return_trace=True)
        again, trace_again = loaded.predict(level=[80, 90], return_trace=True)
        pd.testing.assert_frame_equal(again, forecast)
        pd.testing.assert_frame_equal(trace_again.to_frame(), trace.to_frame())
        pd.testing.assert_frame_equal(loaded.predict(make_frame(seed=4)), model.predict(make_frame(seed=4)))
        assert loaded.get_params() == model.get_params()
        assert loaded.auto_config_ == model.auto_config_
        assert loaded.report_ == model.report_


def test_the_folder_holds_three_plain_files(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted([CONFIG, WEIGHTS, CARD])
    assert sorted(path.name for path in saved.parent.iterdir()) == ["model"]
    assert "Forecasts 6 steps of 3 series" in (saved / CARD).read_text()


def test_saving_again_replaces_the_model(saved: Path) -> None:
    other = make_forecaster(**UNIVARIATE).fit(make_frame(seed=8))
    other.save(saved)
    pd.testing.assert_frame_equal(LeapTS.load(saved).predict(), other.predict())


def test_saving_over_something_else_is_refused(model: LeapTS, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelFileError, match="exists and is not a model folder"):
        model.save(tmp_path / "precious")
    (tmp_path / "precious" / "config.json").write_text('{"name": "my app"}')
    with pytest.raises(ModelFileError, match="exists and is not a model folder"):
        model.save(tmp_path / "precious")
    assert (tmp_path / "precious" / "thesis.txt").exists()
    with pytest.raises(ModelFileError, match="does not exist; make it first"):
        model.save(tmp_path / "no" / "where")


def test_an_empty_folder_is_no_more_in_the_way_than_none(model: LeapTS, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    pd.testing.assert_frame_equal(LeapTS.load(tmp_path / "empty").predict(), model.predict())


def test_a_model_with_something_beside_it_is_not_replaced(model: LeapTS, saved: Path) -> None:
    (saved / "notes.txt").write_text("do not lose")
    with pytest.raises(ModelFileError, match="exists and is not a model folder"):
        model.save(saved)


def test_a_link_to_a_model_stays_a_link(model: LeapTS, saved: Path) -> None:
    link = saved.parent / "latest"
    link.symlink_to(saved)
    model.save(link)
    assert link.is_symlink()
    assert sorted(path.name for path in saved.parent.iterdir()) == ["latest", "model"]


def test_every_single_damaged_byte_of_the_configuration_is_caught(saved: Path) -> None:
    file = saved / CONFIG
    original = file.read_bytes()
    for place in range(0, len(original), 7):
        damaged = bytearray(original)
        damaged[place] ^= 0x01
        file.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            LeapTS.load(saved)


@pytest.mark.parametrize("place", [0, 8, 60, 2000, -1])
def test_damaged_weights_are_caught(saved: Path, place: int) -> None:
    file = saved / WEIGHTS
    damaged = bytearray(file.read_bytes())
    damaged[place] ^= 0x10
    file.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"model\.safetensors is damaged, or belongs to another model"):
        LeapTS.load(saved)


@pytest.mark.parametrize(("length", "is_kept"), [(600, True), (20_000, False)])
def test_a_model_is_saved_only_if_it_can_be_loaded(
    length: int, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_MAX_USUAL_CONFIG", 10_000)
    names = {f"{number:0{length}}": 40 for number in range(50)}
    model = make_forecaster(max_steps=1, input_size=4, h=2, **UNIVARIATE).fit(make_frame(names))
    if not is_kept:
        with pytest.raises(ModelFileError, match=r"too long to be kept .the longest, '0000.*has 20,000 characters"):
            model.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()
        return
    model.save(tmp_path / "model")
    config, weights = (tmp_path / "model" / name for name in (CONFIG, WEIGHTS))
    assert config.stat().st_size > weights.stat().st_size
    pd.testing.assert_frame_equal(LeapTS.load(tmp_path / "model").predict(), model.predict())


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
@pytest.mark.parametrize("keep", [0, 10, -1])
def test_cut_files_are_caught(saved: Path, name: str, keep: int) -> None:
    file = saved / name
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelFileError, match="copy the folder again"):
        LeapTS.load(saved)


def test_weights_of_another_model_are_caught(saved: Path, tmp_path: Path) -> None:
    other = make_forecaster(random_seed=2, **MULTIVARIATE).fit(make_frame())
    other.save(tmp_path / "other")
    (saved / WEIGHTS).write_bytes((tmp_path / "other" / WEIGHTS).read_bytes())
    with pytest.raises(ModelFileError, match="belongs to another model"):
        LeapTS.load(saved)


def test_a_newer_schema_asks_for_an_upgrade(saved: Path) -> None:
    config = json.loads((saved / CONFIG).read_text())
    (saved / CONFIG).write_text(json.dumps({**config, "schema": 99}))
    with pytest.raises(ModelFileError, match=rf"newer LeapTS \(schema 99, this one knows {SCHEMA}\); upgrade"):
        LeapTS.load(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not a LeapTS configuration"),
        ("[]", "not a LeapTS configuration"),
        ("{", "not JSON"),
        ("\x00", "not JSON"),
    ],
)
def test_a_foreign_configuration_is_refused(saved: Path, content: str, message: str) -> None:
    (saved / CONFIG).write_text(content)
    with pytest.raises(ModelFileError, match=message):
        LeapTS.load(saved)


def test_missing_files_are_named(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="nothing does not exist; give the folder that a fit wrote"):
        LeapTS.load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="is not a folder"):
        LeapTS.load(saved / CONFIG)
    (saved / WEIGHTS).unlink()
    with pytest.raises(ModelFileError, match=r"model\.safetensors cannot be read \(No such file"):
        LeapTS.load(saved)


def _forge(saved: Path, config: dict[str, Any]) -> None:
    """Write a configuration whose digests fit, as whoever changes one on purpose would."""
    config["weights_sha256"] = hashlib.sha256((saved / WEIGHTS).read_bytes()).hexdigest()
    del config["sha256"]
    config["sha256"] = folder._digest(config)
    (saved / CONFIG).write_bytes(folder.to_json(config))


FORGED: dict[str, Any] = {
    "data.timezone": "V2000000000",
    "data.freq": "999999999999D",
    "data.series": ["a", "b", "b"],
    "data.another": 1,
    "schema": True,
    "params.alias": "unique_id",
    "params.another": 1,
    "model.h": "many",
    "model.another": 1,
    "training.max_steps": -1,
    "report.steps": "many",
}


@pytest.mark.parametrize("field", FORGED)
def test_a_forged_field_is_refused_in_plain_words(saved: Path, field: str) -> None:
    config = json.loads((saved / CONFIG).read_text())
    holder = config if "." not in field else config[field.partition(".")[0]]
    holder[field.rpartition(".")[2]] = FORGED[field]
    _forge(saved, config)
    with pytest.raises(ModelFileError) as refused:
        LeapTS.load(saved)
    message = str(refused.value)
    assert str(saved) in message
    assert not any(
        phrase in message.lower() for phrase in ("pydantic", "validation error", "input_value", "input should")
    )
    if field not in ("schema", "params.another"):
        assert field.rpartition(".")[2] in message


@pytest.mark.parametrize(
    ("tensor", "value"),
    [("scaler.mean", torch.nan), ("tail.values", 1e300), ("tail.first", 2**63 - 1), ("scores.another", 1.0)],
)
def test_a_forged_tensor_is_refused_by_name(saved: Path, tensor: str, value: float) -> None:
    tensors = safetensors.torch.load_file(saved / WEIGHTS)
    tensors.setdefault(tensor, torch.zeros(1))[0] = value
    (saved / WEIGHTS).write_bytes(safetensors.torch.save(tensors))
    _forge(saved, json.loads((saved / CONFIG).read_text()))
    with pytest.raises(ModelFileError, match=rf"{tensor}"):
        LeapTS.load(saved)


def test_the_reason_of_a_refusal_has_at_most_200_characters(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError(f"much\n  to {'say' * 100}")

    monkeypatch.setattr(folder, "validated", fail)
    with pytest.raises(ModelFileError, match="is not a valid model folder") as error:
        LeapTS.load(saved)
    why = str(error.value).partition(" (")[2].partition(")")[0]
    assert why.startswith("much to say")
    assert len(why) == 200


def test_a_folder_that_is_replaced_while_it_is_loaded_is_one_of_the_two(tmp_path: Path) -> None:
    versions = [make_forecaster(random_seed=seed, max_steps=1, **UNIVARIATE).fit(make_frame()) for seed in (1, 2)]
    contents = []
    for number, version in enumerate(versions):
        version.save(tmp_path / str(number))
        contents.append({file.name: file.read_bytes() for file in (tmp_path / str(number)).iterdir()})
    versions[0].save(tmp_path / "model")
    is_done = threading.Event()

    def replace() -> None:
        for number in itertools.count(1):
            write_folder(tmp_path / "model", contents[number % 2])
            if is_done.is_set():
                return

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seeds = {LeapTS.load(tmp_path / "model").random_seed for _ in range(30)}
    finally:
        is_done.set()
        writer.join()
    assert seeds <= {1, 2}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "model"]


def test_a_loaded_model_does_not_read_its_folder_again(model: LeapTS, saved: Path) -> None:
    loaded = LeapTS.load(saved)
    shutil.rmtree(saved)
    pd.testing.assert_frame_equal(loaded.predict(level=[80]), model.predict(level=[80]))


@pytest.fixture
def as_nobody() -> Iterator[Callable[[], None]]:
    """Continue as a user without privileges; tests that are run by such a user do so anyway."""
    before = os.geteuid()
    yield lambda: os.seteuid(65534) if before == 0 else None
    os.seteuid(before)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may write to."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_read_only_model_is_loaded_and_not_replaced(
    model: LeapTS, shared: Path, as_nobody: Callable[[], None]
) -> None:
    path = shared / "model"
    model.save(path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for entry in (*path.iterdir(), path):
        entry.chmod(0o555 if entry.is_dir() else 0o444)
    LeapTS.load(path)  # imports what loading needs, which other users may not read
    as_nobody()
    pd.testing.assert_frame_equal(LeapTS.load(path).predict(), model.predict())
    with pytest.raises(ModelFileError, match=r"model cannot be written \(Permission denied\)"):
        folder.require_place(path)
    with pytest.raises(ModelFileError, match=r"model cannot be written \(Permission denied\)"):
        model.save(path)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert [entry.name for entry in shared.iterdir()] == ["model"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of two users")
@pytest.mark.parametrize("private", ["model", ".", "model/config.json", "model/model.safetensors"])
def test_a_model_that_may_not_be_read_is_refused_by_name(
    model: LeapTS, shared: Path, private: str, as_nobody: Callable[[], None]
) -> None:
    model.save(shared / "model")
    (shared / private).chmod(0)
    as_nobody()
    with pytest.raises(ModelFileError, match=r"model.*(may not be read|cannot be read)"):
        LeapTS.load(shared / "model")


def _announcing(end: int, *, size: int | None = None) -> bytes:
    """The start of a safetensors file whose tensors end there."""
    header = json.dumps({"__metadata__": {"x": "y"}, "a": {"data_offsets": [0, end]}, "b": {"data_offsets": [0, 1]}})
    return (len(header) if size is None else size).to_bytes(8, "little") + header.encode()


def test_a_file_longer_than_its_header_announces_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    whole = _announcing(5) + b"12345"
    file.write_bytes(whole)
    assert folder.regular_file(file) == whole
    file.write_bytes(whole + b"6")
    with pytest.raises(ModelFileError, match="longer than such a file can be"):
        folder.regular_file(file)


def test_a_file_longer_than_a_given_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"12345")
    assert folder.regular_file(file, 5) == b"12345"
    with pytest.raises(ModelFileError, match="longer than such a file can be"):
        folder.regular_file(file, 4)


def test_a_file_with_an_invalid_header_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_MAX_HEADER", 64)
    file = tmp_path / "weights"
    nonsense = [b"\x05" + bytes(7) + b"nonsense", b"\x02" + bytes(7) + b"[]", b"\x07" + bytes(7) + b'{"a":1}']
    for start in nonsense:
        file.write_bytes(start.ljust(64))
        assert len(folder.regular_file(file)) == 64
        file.write_bytes(start.ljust(65))
        with pytest.raises(ModelFileError, match="longer than such a file can be"):
            folder.regular_file(file)


def test_a_header_above_the_limit_announces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start = _announcing(5)
    size = len(start) - 8
    monkeypatch.setattr(folder, "_MAX_HEADER", size)
    assert folder._announced_size(start[:8], start[8:]) == len(start) + 5
    monkeypatch.setattr(folder, "_MAX_HEADER", size - 1)
    assert folder._announced_size(start[:8], start[8:]) == len(start)


def test_a_file_without_tensors_is_as_long_as_its_header() -> None:
    assert folder._announced_size((2).to_bytes(8, "little"), b"{}") == 10


def test_the_limit_of_the_configuration_grows_with_the_weights() -> None:
    assert folder.max_config_bytes(0) == 4 * 1024**2
    assert folder.max_config_bytes(10) == 4 * 1024**2 + 160
    assert folder._MAX_HEADER == 1024**2


def test_only_ordinary_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        folder.regular_file(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"cannot be read \(No such file or directory\)"):
        folder.regular_file(tmp_path / "nothing")


def test_a_system_error_without_a_number_is_shown_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("odd")

    (tmp_path / "a").touch()
    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(ModelFileError, match=r"cannot be read \(odd\)"):
        folder.regular_file(tmp_path / "a")


@pytest.mark.parametrize("version", ['"1"', "-5", "0", "true", "1.0", "null", "[1]"])
def test_a_schema_version_is_a_positive_integer(version: str) -> None:
    with pytest.raises(ModelFileError, match="not a LeapTS configuration"):
        folder.parse(f'{{"schema": {version}}}'.encode(), Path("config.json"))


@pytest.mark.parametrize("content", [b"{}", b"[1]"])
def test_a_configuration_has_a_schema(content: bytes) -> None:
    with pytest.raises(ModelFileError, match="not a LeapTS configuration"):
        folder.parse(content, Path("config.json"))
    assert folder.parse(b'{"schema": 1}', Path("config.json")) == {"schema": 1}


def test_a_configuration_is_written_in_one_layout() -> None:
    assert folder.to_json({"name": "\xfc", "more": [1]}) == '{\n "name": "\xfc",\n "more": [\n  1\n ]\n}'.encode()
