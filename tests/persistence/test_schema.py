"""The contents of a model folder are validated: fields before anything is built, then tensors."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.panel import FrameStyle
from leapts.forecasting.intervals import POINT_LEVELS
from leapts.model.build import build_model
from leapts.persistence import schema
from leapts.persistence.schema import DataFields, FolderConfig, network_from
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


SCORES = {"scores.scores": torch.zeros(4, 3), "scores.counts": torch.tensor([4])}  # up to schema 3
SUPPORT = {
    "support.lower": torch.tensor([0.0, -torch.inf], dtype=torch.float64),
    "support.upper": torch.tensor([1.0, torch.inf], dtype=torch.float64),
    "support.whole": torch.tensor([True, False]),
}
CALIBRATION = {
    "calibration.offsets": torch.zeros(3, 3, len(POINT_LEVELS)),
    "calibration.usual": torch.zeros(3, 3),
    "calibration.windows": torch.tensor([40, 40, 80]),
    "calibration.scores": torch.zeros(7, 2, 3, dtype=torch.float16),
}


def test_tensors_are_exactly_those_of_the_model() -> None:
    network_from(_tensors(), _config())
    network_from({**_tensors(), **SCORES}, _config())
    network_from({**_tensors(), **SUPPORT, **CALIBRATION}, _config())
    network_from({**_tensors(), "tail.start_offsets": torch.tensor([0, 10**6])}, _config())
    for name in _tensors():
        less = {key: value for key, value in _tensors().items() if key != name}
        with pytest.raises(ValueError, match=f"{name} is missing"):
            network_from(less, _config())
    for name in ("another", "scores.any", "model.another", "scaler.deviation"):
        with pytest.raises(ValueError, match=f"{name} is missing, or unknown"):
            network_from({**_tensors(), **SCORES, name: torch.zeros(1)}, _config())
    for name in SCORES:
        with pytest.raises((ValueError, KeyError), match=r"scores\."):
            network_from({**_tensors(), name: SCORES[name]}, _config())
    for name in {*SUPPORT, *CALIBRATION} - {"calibration.scores"}:  # which only sample paths need
        less = {**_tensors(), **SUPPORT, **CALIBRATION}
        del less[name]
        with pytest.raises(ValueError, match=f"{name.partition('.')[0]}.* is missing"):
            network_from(less, _config())


@pytest.mark.parametrize("name", [*SUPPORT, *CALIBRATION])
def test_a_support_or_calibration_of_another_shape_or_type_is_refused(name: str) -> None:
    tensors = {**_tensors(), **SUPPORT, **CALIBRATION}
    for other in (tensors[name].to(torch.int32), tensors[name][None], tensors[name].repeat_interleave(2, -1)):
        with pytest.raises(ValueError, match=r"support|calibration"):
            network_from({**tensors, name: other}, _config())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calibration.offsets", torch.nan),
        ("calibration.offsets", 1e19),
        ("calibration.usual", torch.inf),
        ("calibration.scores", torch.nan),
        ("calibration.scores", torch.inf),
        ("support.lower", torch.nan),
        ("support.lower", 1.0),  # not below the upper limit
        ("support.upper", -torch.inf),
    ],
)
def test_a_forged_support_or_calibration_is_refused_by_name(name: str, value: float) -> None:
    tensors = {**_tensors(), **SUPPORT, **CALIBRATION}
    tensors[name] = tensors[name].clone()
    tensors[name].view(-1)[0] = value
    with pytest.raises(ValueError, match=name.partition(".")[0]):
        network_from(tensors, _config())


def test_a_calibration_leaves_the_median_where_it_is() -> None:
    moved = CALIBRATION["calibration.offsets"].clone()
    moved[1, 2, POINT_LEVELS.index(0.5)] = 0.1
    with pytest.raises(ValueError, match=r"calibration\.offsets move the median"):
        network_from({**_tensors(), **CALIBRATION, "calibration.offsets": moved}, _config())


@pytest.mark.parametrize("groups", [0, 2, 4])
def test_a_calibration_has_a_group_for_each_series_and_one_for_all(groups: int) -> None:
    others = {name: value[:1].repeat(groups, *[1] * (value.dim() - 1)) for name, value in CALIBRATION.items()}
    others["calibration.scores"] = CALIBRATION["calibration.scores"]
    with pytest.raises(ValueError, match=f"the calibration has {groups} groups; there are 2 series"):
        network_from({**_tensors(), **others}, _config())


@pytest.mark.parametrize("name", [name for name in {**_tensors(), **SCORES} if not name.startswith("model.")])
def test_a_tensor_of_another_shape_or_type_is_refused(name: str) -> None:
    tensors = {**_tensors(), **SCORES}
    for other in (tensors[name].to(torch.float16), tensors[name][None, None, None]):
        with pytest.raises(ValueError, match=f"{name} is torch"):
            network_from({**tensors, name: other}, _config())
    if name not in ("tail.values", *SCORES):
        with pytest.raises(ValueError, match=f"{name} is torch"):
            network_from({**tensors, name: torch.cat([tensors[name]] * 2)}, _config())


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
    network_from(_changed(name, place, value), _config())


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
        network_from(_changed(name, place, value), _config())


def test_integer_timestamps_leave_room_for_a_forecast() -> None:
    steps = _config(freq=1, timestamp_type="int64", style=FrameStyle())
    network_from(_changed("tail.first", 1, 2**62), steps)
    with pytest.raises(ValueError, match="later than any possible timestamp"):
        network_from(_changed("tail.first", 1, 2**63 - 3), steps)


def test_timestamps_lie_on_the_calendar_of_the_frequency() -> None:
    with pytest.raises(ValueError, match="1970-01-01"):
        network_from(_tensors(), _config(freq="ME"))


def test_a_series_longer_than_the_input_is_refused() -> None:
    longer = torch.zeros(INPUT_SIZE + 2, dtype=torch.float64)
    offsets = torch.tensor([0, INPUT_SIZE + 1, INPUT_SIZE + 2])
    with pytest.raises(ValueError, match=r"tail\.offsets"):
        network_from({**_tensors(), "tail.values": longer, "tail.offsets": offsets}, _config())


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


@pytest.mark.parametrize(
    "sizes", [{"h": 10**12}, {"input_size": 10**12}, {"control_size": 10**6, "summary_size": 10**9}]
)
def test_sizes_that_the_weights_do_not_have_take_no_memory(sizes: dict[str, int]) -> None:
    config = _config().model_copy(update={"model": MODEL.model_copy(update=sizes)})
    with pytest.raises(ValueError, match=r"model\."):
        network_from(_tensors(), config)


def test_the_network_is_that_of_the_tensors() -> None:
    network = network_from(_tensors(), _config())
    assert all(torch.equal(value, _tensors()[f"model.{name}"]) for name, value in network.state_dict().items())
    history = torch.linspace(0, 1, 2 * INPUT_SIZE).view(1, 2, INPUT_SIZE)
    assert torch.equal(network(history), build_model(MODEL, seed=0)(history))
