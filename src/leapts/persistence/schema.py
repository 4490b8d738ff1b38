"""The contents of a model folder, validated before anything is built from them.

The digests of a folder detect damage, not tampering: whoever forges a folder can compute them. So every field of
`config.json` is checked before a network is built, and every tensor before it is used.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, Self

import numpy as np
import safetensors.torch
import torch
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.covariate_channels import Coding, CovariateEncoder
from leapts.data.frequency import MAX_DATE, MIN_DATE, parse_frequency, timestamps_at
from leapts.data.panel import FrameStyle
from leapts.data.timezone import is_timezone
from leapts.data.validation import MAX_VALUE
from leapts.forecasting.auto_config import AutoOption
from leapts.forecasting.intervals import POINT_LEVELS
from leapts.forecasting.networks import BUILDERS
from leapts.messages import explain, quoted
from leapts.model import LeapTSModel
from leapts.training.early_stopping import TrainingReport

SCHEMA = 5  # 5 has covariates
# Products of a few such weights are within single precision; corrections are in standard deviations.
_MAX_BY_PART = {"model": 1e9, "calibration": 1e18}
_MAX_START_OFFSET = 1_000_000  # steps from the first timestamp of the data to the input of a forecast
_TIME_TYPE = r"u?int(8|16|32|64)|date32\[day\]|date64\[ms\]|timestamp\[(s|ms|us|ns|day)\]"

Integer = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Text = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Fields(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", populate_by_name=True)


def _fields_of(kind: type) -> BeforeValidator:
    """Validate a table as a dataclass, and refuse fields that it does not have."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    names = {one.name for one in fields(kind)}

    def validate(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if unknown := sorted(value.keys() - names):
            raise ValueError(f"has an unknown field {quoted(unknown[0])}")
        try:
            return adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise ValueError(explain(error)) from None

    return BeforeValidator(validate)


class DataFields(_Fields):
    """The data of a fit: names, frequency, timezone and style of the frame."""

    series: Annotated[tuple[Text, ...], Field(min_length=1)] | Annotated[tuple[Integer, ...], Field(min_length=1)]
    freq: str | int
    timezone: str | None
    style: Annotated[FrameStyle, _fields_of(FrameStyle)]
    timestamp_type: Literal["int64", "datetime64[us]"]

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        style = self.style
        if len(set(self.series)) < len(self.series):
            raise ValueError("series: a name is repeated")
        if self.timezone is not None and not is_timezone(self.timezone):
            raise ValueError(f"timezone={quoted(self.timezone)}: this computer does not know it")
        if len({style.id_col, style.time_col, style.target_col} - {""}) < 3:
            raise ValueError("style: needs three different column names")
        if not re.fullmatch(_TIME_TYPE, style.time_type):
            raise ValueError(f"style.time_type={quoted(style.time_type)}: is not a type of timestamps")
        if (parse_frequency(self.freq).clock == "steps") != (self.timestamp_type == "int64"):
            raise ValueError(f"freq={quoted(self.freq)}: does not fit timestamps of type {self.timestamp_type}")
        return self


class FolderConfig(_Fields):
    """All fields of `config.json`; `params` are validated by the estimator."""

    schema_version: Annotated[int, Field(ge=1, le=SCHEMA, alias="schema")]
    params: dict[str, Any]
    model: ModelConfig
    training: TrainingConfig
    clusters: tuple[int, ...] | None
    pad_short: bool
    data: DataFields
    report: Annotated[TrainingReport, _fields_of(TrainingReport)]
    auto_config: tuple[Annotated[AutoOption, _fields_of(AutoOption)], ...]
    covariates: tuple[Annotated[Coding, _fields_of(Coding)], ...] = ()
    weights_sha256: Digest

    @model_validator(mode="after")
    def _has_series_of_model(self) -> Self:
        if self.model.n_series not in (None, len(self.data.series)):
            raise ValueError(f"model.n_series={self.model.n_series}: there are {len(self.data.series)} series")
        if self.model.covariates != (CovariateEncoder(self.covariates).channels if self.covariates else None):
            raise ValueError("model.covariates: there are other covariates")
        return self


_RENAMED_OPTIONS = {"variate_identity": "series_embedding", "teachers": "distill_from"}
_RENAMED_DATA = {"zone": "timezone", "stamps": "timestamp_type"}
_RENAMED_TENSORS = {"scaler.deviation": "scaler.std", "tail.skipped": "tail.start_offsets"}


def with_current_names(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[Any, dict[str, Tensor]]:
    """Rename fields and tensors of a folder that was saved with schema 1 or 2."""
    if config["schema"] >= 3:
        return config, dict(tensors)
    params, options = config["params"], ("model", "training")
    current = {name: value for name, value in config.items() if name != "picks"}
    current |= {name: _renamed(config[name], _RENAMED_OPTIONS) for name in options}
    current["params"] = {**params, **{name: _renamed(params.get(name), _RENAMED_OPTIONS) for name in options}}
    current["data"] = _renamed(config["data"], _RENAMED_DATA)
    current["auto_config"] = [_renamed(one, {"name": "option"}) for one in config["picks"]]
    return current, {_RENAMED_TENSORS.get(name, name): value for name, value in tensors.items()}


def _renamed(values: Any, names: Mapping[str, str]) -> Any:
    return {names.get(name, name): value for name, value in values.items()} if isinstance(values, dict) else values


def validated(config: Mapping[str, Any], weights: bytes) -> tuple[FolderConfig, dict[str, Tensor], LeapTSModel]:
    """Validate all fields and tensors of a folder, and build its network.

    Raises:
        ValueError: With the field or tensor, in plain words.
    """
    current, tensors = with_current_names(config, safetensors.torch.load(weights))
    try:
        contents = FolderConfig.model_validate_json(json.dumps(current))
    except ValidationError as error:
        raise ValueError(explain(error)) from error
    return contents, tensors, network_from(tensors, contents)


def network_from(tensors: Mapping[str, Tensor], config: FolderConfig) -> LeapTSModel:
    """Build the network, and refuse tensors that are not those of the network, its data and its calibration.

    Raises:
        ValueError: With the tensor.
    """
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    if config.model.h > sum(value.numel() for value in weights.values()):
        raise ValueError(f"model.h={config.model.h}: is more than the network has weights")
    with torch.device("meta"):  # weights without memory, until those of the file are checked
        model = BUILDERS[config.model.network.kind](config.model, seed=0, clusters=config.clusters)
    _require_shapes(tensors, config, model)
    _require_ranges(tensors, config)
    model.load_state_dict(weights, assign=True)
    if any(constant.is_meta for constant in model.buffers()):  # of a registered part; our own are on the CPU
        model = BUILDERS[config.model.network.kind](config.model, seed=0, clusters=config.clusters)
        model.load_state_dict(weights, assign=True)
    return model.float()


def _require_ranges(tensors: Mapping[str, Tensor], config: FolderConfig) -> None:
    series, h = len(config.data.series), config.model.h
    limits = {"scaler.mean": MAX_VALUE, "scaler.std": 2 * MAX_VALUE, "tail.values": MAX_VALUE}
    limits["calibration.scores"] = torch.finfo(torch.float16).max
    for name, value in tensors.items():
        if name.startswith("covariates."):  # missing values are allowed
            continue
        limit = limits.get(name, _MAX_BY_PART.get(name.partition(".")[0], torch.inf))
        if value.is_floating_point() and not bool((value.abs() <= limit).all()):
            raise ValueError(f"{name} holds values that are missing or too large")
    if not bool((tensors["scaler.std"] > 0).all()):
        raise ValueError("scaler.std is not positive")
    if "support.lower" in tensors and not bool((tensors["support.lower"] < tensors["support.upper"]).all()):
        raise ValueError("support.lower is not below support.upper")
    groups = tensors.get("calibration.windows", tensors.get("scores.counts"))
    if groups is not None and len(groups) not in (1, series + 1):
        raise ValueError(f"the calibration has {len(groups)} groups; there are {series} series")
    median = (config.model.quantiles or POINT_LEVELS).index(0.5)
    if "calibration.offsets" in tensors and bool(tensors["calibration.offsets"][..., median].any()):
        raise ValueError("calibration.offsets move the median")
    offsets, values = tensors["tail.offsets"], tensors["tail.values"]
    lengths = offsets.diff()
    is_split = (int(offsets[0]), int(offsets[-1])) == (0, len(values))
    if not is_split or int(lengths.min()) < 1 or int(lengths.max()) > config.model.input_size:
        raise ValueError("tail.offsets do not split the values into series")
    if config.covariates:
        ends = tensors["covariates.ends"]
        rows = ends.diff(prepend=ends.new_zeros(1))
        if int(ends[-1]) != len(tensors["covariates.values"]) or not bool(((rows >= 0) & (rows <= lengths + h)).all()):
            raise ValueError("covariates.ends do not split the values into series")
    steps = tensors.get("tail.start_offsets", lengths.new_zeros(series))
    if not bool(((steps >= 0) & (steps <= _MAX_START_OFFSET)).all()):
        raise ValueError("tail.start_offsets are not steps")
    first = tensors["tail.first"].numpy().astype(config.data.timestamp_type)
    if first.dtype.kind == "M" and not bool(((first >= MIN_DATE) & (first <= MAX_DATE)).all()):
        raise ValueError("tail.first holds timestamps outside of years 1 to 9999")
    furthest = np.full(series, int(steps.max()) + int(lengths.max()) + h)
    timestamps_at(first, furthest, config.data.freq, config.data.timezone)  # refuses timestamps that do not fit


def _require_shapes(tensors: Mapping[str, Tensor], config: FolderConfig, model: LeapTSModel) -> None:
    series, h = len(config.data.series), config.model.h
    expected: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
        **{f"model.{name}": (tuple(value.shape), torch.float32) for name, value in model.state_dict().items()},
        "scaler.mean": ((series,), torch.float64),
        "scaler.std": ((series,), torch.float64),
        "tail.first": ((series,), torch.int64),
        "tail.offsets": ((series + 1,), torch.int64),
        "tail.values": ((-1,), torch.float64),
    }
    if "tail.start_offsets" in tensors:
        expected["tail.start_offsets"] = ((series,), torch.int64)
    if config.covariates:
        roles = [one.role for one in config.covariates]
        columns = len(roles) - roles.count("static")
        expected |= {"covariates.values": ((-1, columns), torch.float64), "covariates.ends": ((series,), torch.int64)}
        expected["covariates.of_series"] = ((series, roles.count("static")), torch.float64)
    if "support.lower" in tensors:
        expected |= {f"support.{name}": ((series,), torch.float64) for name in ("lower", "upper")}
        expected["support.whole"] = ((series,), torch.bool)
    if "calibration.windows" in tensors:
        groups = len(tensors["calibration.windows"])
        levels = len(config.model.quantiles or POINT_LEVELS)
        expected |= {"calibration.windows": ((groups,), torch.int64), "calibration.usual": ((groups, h), torch.float32)}
        expected["calibration.offsets"] = ((groups, h, levels), torch.float32)
        if "calibration.scores" in tensors:
            expected["calibration.scores"] = ((-1, config.model.n_series or 1, h), torch.float16)
    elif "scores.scores" in tensors or "scores.counts" in tensors:  # up to schema 3
        rows = (-1, -1) if tensors["scores.scores"].dim() == 3 else (-1,)  # schema 1 has a dimension for groups
        expected |= {"scores.scores": ((*rows, h), torch.float32), "scores.counts": ((-1,), torch.int64)}
    if tensors.keys() != expected.keys():
        raise ValueError(f"{sorted(tensors.keys() ^ expected.keys())[0]} is missing, or unknown")
    for name, (shape, dtype) in expected.items():
        found = tensors[name]
        fits = len(shape) == found.dim() and all(a in (-1, b) for a, b in zip(shape, found.shape, strict=True))
        if not fits or found.dtype != dtype:
            raise ValueError(f"{name} is {found.dtype} of shape {list(found.shape)}")
