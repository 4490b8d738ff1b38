"""What a model folder must hold before any of it is believed.

The digests in a folder tell damage, not intent: whoever forges one can make them fit. So sizes are looked at before
anything is read, types before anything is built, and the shapes of all tensors before memory is taken for them.
"""

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from leapts.config import ModelConfig
from leapts.data.frequency import parse_frequency
from leapts.data.panel import FrameStyle
from leapts.data.timezone import is_timezone
from leapts.errors import ModelFileError
from leapts.forecasting.auto_config import AutoOption
from leapts.messages import quoted
from leapts.model.build import build_model

_MAX_USUAL_CONFIG = 1 << 22
_NAMES_TO_NUMBERS = 16  # a series has at least 40 bytes among the weights, and so 640 for its name
_MAX_HEADER = 1 << 20
_MAX_WEIGHT = 1e9  # products of a few such weights still fit single precision
_FARTHEST_START = 1_000_000  # steps from the first stamp of a fit's data to the look-back: of days, some 2,700 years

_Names = Annotated[tuple[str, ...], Field(min_length=1)] | Annotated[tuple[int, ...], Field(min_length=1)]


def max_config_bytes(weights: int) -> int:
    """How long a configuration may be beside so many bytes of weights: what it says of the model, and all names."""
    return _MAX_USUAL_CONFIG + _NAMES_TO_NUMBERS * weights


class DataPart(BaseModel):
    """What `config.json` says of the data."""

    model_config = ConfigDict(strict=True, frozen=True)

    series: _Names
    freq: str | int
    zone: str | None
    style: FrameStyle
    stamps: Literal["int64", "datetime64[us]"]


class Contents(BaseModel):
    """The parts of `config.json` that have no options of their own to check them."""

    model_config = ConfigDict(strict=True, frozen=True)

    params: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    clusters: tuple[int, ...] | None
    pad_short: bool
    data: DataPart
    report: dict[str, Any]
    auto_config: tuple[AutoOption, ...]
    weights_sha256: str


def regular_file(path: Path, most: int | None = None) -> bytes:
    """All of an ordinary file: a pipe or a device would keep its reader waiting, or never end.

    Raises:
        ModelFileError: When it is no such file, too long, or cannot be read.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ModelFileError(f"{path} is not an ordinary file; give the folder that a fit wrote")
        with path.open("rb") as file:
            limit = _announced_size(file.read(8), file.read(_MAX_HEADER)) if most is None else most
            if found.st_size > limit:
                raise ModelFileError(f"{path} is damaged: longer than such a file can be; copy the folder again")
            file.seek(0)
            return file.read()
    except ModelFileError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{path} cannot be read ({reason}); give the folder that a fit wrote") from error


def _announced_size(length: bytes, header: bytes) -> int:
    """How long a safetensors file says it is; of nonsense, no more is read than it takes to tell."""
    size = int.from_bytes(length, "little")
    try:
        entries = json.loads(header[:size]) if size <= _MAX_HEADER else {}
        ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
        return 8 + size + max(ends, default=0)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return _MAX_HEADER


def parse(content: bytes, file: Path) -> dict[str, Any]:
    """The values of a configuration.

    Raises:
        ModelFileError: When the content is something else.
    """
    try:
        # Told to be UTF-8, the parser does not guess, and loads no decoder for what it guessed.
        config: Any = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is not JSON ({error}); copy the folder again") from error
    if not isinstance(config, dict) or not isinstance(config.get("schema"), int):
        raise ModelFileError(f"{file} is not a LeapTS configuration; give the folder that a fit wrote")
    return config


def laid_out(config: Mapping[str, Any]) -> bytes:
    """The one way a configuration is written."""
    return json.dumps(config, indent=1, ensure_ascii=False).encode()


_RENAMED_OPTIONS = {"variate_identity": "series_embedding", "teachers": "distill_from"}


def with_current_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the options that have been renamed since it was written under their current names."""

    def renamed(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if options is None else {_RENAMED_OPTIONS.get(name, name): value for name, value in options.items()}

    params = {**config["params"], **{part: renamed(config["params"].get(part)) for part in ("model", "training")}}
    parts = {part: renamed(config[part]) for part in ("model", "training")}
    picks = [{"option": one["name"], "value": one["value"], "reason": one["reason"]} for one in config.get("picks", ())]
    return {"auto_config": picks, **config, **parts, "params": params}


def require_shapes(tensors: Mapping[str, Tensor], config: ModelConfig, contents: Contents) -> None:
    """Refuse tensors that are not exactly those of the model, its data and its scores.

    Raises:
        ValueError: Naming the tensor.
    """
    series = len(contents.data.series)
    parse_frequency(contents.data.freq)
    zone = contents.data.zone
    if zone is not None:
        if not is_timezone(zone):
            raise ValueError(f"this computer knows no time zone {quoted(zone)}")
        pd.Timestamp(0, tz="UTC").tz_convert(zone)
    with torch.device("meta"):
        model = build_model(config, seed=0, clusters=contents.clusters)
    shapes = {f"model.{name}": (value.shape, torch.float32) for name, value in model.state_dict().items()}
    shapes |= {name: (torch.Size([series]), torch.float64) for name in ("scaler.mean", "scaler.deviation")}
    shapes |= {
        "tail.first": (torch.Size([series]), torch.int64),
        "tail.offsets": (torch.Size([series + 1]), torch.int64),
    }
    if "tail.skipped" in tensors:
        shapes["tail.skipped"] = (torch.Size([series]), torch.int64)
    shapes["tail.values"] = (torch.Size([tensors["tail.values"].numel()]), torch.float64)
    others = {name for name in tensors if not name.startswith("scores.")}
    if others != shapes.keys():
        raise ValueError(f"{sorted(others ^ shapes.keys())[0]} is missing, or too much")
    for name, (shape, dtype) in shapes.items():
        if (tensors[name].shape, tensors[name].dtype) != (shape, dtype):
            raise ValueError(f"{name} is {tensors[name].dtype} of shape {list(tensors[name].shape)}")


def require_numbers(tensors: Mapping[str, Tensor], lookback: int) -> None:
    """Refuse values no fit leaves behind.

    Raises:
        ValueError: Naming the tensor.
    """
    for name, value in tensors.items():
        limit = _MAX_WEIGHT if name.startswith("model.") else torch.inf
        if value.is_floating_point() and not name.startswith("scores.") and not bool((value.abs() < limit).all()):
            raise ValueError(f"{name} holds something that is no number, or far too large")
    lengths = tensors["tail.offsets"].diff()
    reaches = (int(tensors["tail.offsets"][0]), int(tensors["tail.offsets"][-1])) == (0, len(tensors["tail.values"]))
    if not reaches or int(lengths.min()) < 1 or int(lengths.max()) > lookback:
        raise ValueError("tail.offsets do not part the values into series")
    skipped = tensors.get("tail.skipped", lengths.new_zeros(1))
    if not bool(((skipped >= 0) & (skipped <= _FARTHEST_START)).all()):
        raise ValueError("tail.skipped does not count steps")
    if not bool((tensors["scaler.deviation"] > 0).all()):
        raise ValueError("scaler.deviation is not above zero everywhere")
