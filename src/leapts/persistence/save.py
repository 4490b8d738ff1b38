"""Save and load a model folder: `config.json`, `model.safetensors`, and a model card. No pickle.

The configuration holds a digest of the weights and one of itself, so that damaged or mixed folders are refused.
Folders are written atomically.
"""

import hashlib
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor

from leapts.data.covariate_channels import CovariateEncoder
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler, Support
from leapts.errors import LeapTSError, ModelFileError
from leapts.files import try_writing, write_folder
from leapts.forecasting.auto_config import AutoConfig
from leapts.forecasting.intervals import Calibration
from leapts.forecasting.predictor import Predictor
from leapts.messages import explain, quoted
from leapts.model import LeapTSModel
from leapts.persistence.model_card import model_card
from leapts.persistence.schema import SCHEMA, DataFields, FolderConfig, validated
from leapts.registration import missing_kind

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
_MAX_READS = 20  # of a folder that is replaced while it is read
_MAX_USUAL_CONFIG = 1 << 22  # bytes
_NAME_BYTES_PER_WEIGHT_BYTE = 16  # a series has at least 40 bytes of weights, so 640 for its name
_MAX_HEADER = 1 << 20


def save(predictor: Predictor, params: dict[str, Any], path: Path) -> None:
    """Write a model folder, or replace one.

    Raises:
        ModelFileError: When the target is no model folder, cannot be written, or the model could not be loaded again.
    """
    require_place(path)
    weights = safetensors.torch.save({name: value.contiguous() for name, value in _tensors(predictor).items()})
    tail = predictor.tail
    data = {
        "series": tail.series,
        "freq": tail.freq,
        "timezone": tail.timezone,
        "style": tail.style,
        "timestamp_type": str(tail.first.dtype),
    }
    try:
        contents = FolderConfig(
            schema_version=SCHEMA,
            params=params,
            model=predictor.config,
            training=predictor.training,
            clusters=predictor.clusters,
            pad_short=predictor.pad_short,
            data=DataFields.model_validate(data),
            report=predictor.report,
            auto_config=tuple(predictor.auto_config),
            covariates=predictor.covariates.codings if predictor.covariates else (),
            weights_sha256=hashlib.sha256(weights).hexdigest(),
        )
    except ValidationError as error:
        raise ModelFileError(f"the model cannot be saved ({explain(error)})") from None
    config = contents.model_dump(mode="json", by_alias=True)
    config["sha256"] = _digest(config)
    content = to_json(config)
    if len(content) > max_config_bytes(len(weights)):
        longest = max(map(str, tail.series), key=len)
        raise ModelFileError(
            f"the names of the {len(tail)} series are too long to be kept (the longest, {quoted(longest)}, has "
            f"{len(longest):,} characters); shorten them"
        )
    write_folder(path, {CONFIG: content, WEIGHTS: weights, CARD: model_card(predictor).encode()})


def require_place(path: Path) -> None:
    """Check that a model folder can be written, before the fit.

    Raises:
        ModelFileError: When the target is no model folder, or cannot be written.
    """
    try:
        if path.exists() and not _is_model(path) and not _is_empty(path):
            raise ModelFileError(f"{path} exists and is not a model folder; choose another name, or remove it")
        if not path.parent.is_dir():
            raise ModelFileError(f"the folder {path.parent} does not exist; make it first")
        try_writing(path)
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written ({error.strerror}); choose another folder") from error


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _is_model(path: Path) -> bool:
    """Whether a folder holds a model and nothing else, so that replacing it loses nothing."""
    try:
        names = {file.name for file in path.iterdir()}
        config = json.loads((path / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return names <= {CONFIG, WEIGHTS, CARD} and isinstance(config, dict) and "weights_sha256" in config


def load(path: Path) -> tuple[Predictor, dict[str, Any]]:
    """Read a fitted model and the options of its estimator.

    Raises:
        ModelFileError: With the file and what is wrong.
    """
    config, weights = _read(path)
    try:
        contents, tensors, model = validated(config, weights)
        return _predictor(contents, tensors, model), contents.params
    except (SafetensorError, LeapTSError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if missing := missing_kind(config.get("model")):
            raise ModelFileError(f"{path}: {missing}") from error
        why = " ".join(str(error).split())[:200]
        raise ModelFileError(f"{path} is not a valid model folder ({why}); fit or copy it again") from error


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read both files of one version of a folder, which may be replaced meanwhile."""
    for attempt in range(1, _MAX_READS + 1):
        before = _identity(path)
        try:
            return _read_once(path)
        except ModelFileError:
            if _identity(path) == before or attempt == _MAX_READS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_once(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        if not path.is_dir():
            problem = "is not a folder" if path.exists() else "does not exist"
            raise ModelFileError(f"{path} {problem}; give the folder that a fit wrote")
        size = (path / WEIGHTS).stat().st_size if (path / WEIGHTS).is_file() else 0
    except PermissionError as error:
        raise ModelFileError(f"{path} may not be read by this user; change its permissions") from error
    file = path / CONFIG
    content = regular_file(file, max_config_bytes(size))
    config = parse(content, file)
    # Equal values in another layout, or repeated keys, are damage too.
    is_unchanged = to_json(config) == content
    if config.pop("sha256", None) != _digest(config) or not is_unchanged:
        raise ModelFileError(f"{file} is damaged, or was changed by hand; copy the folder again")
    weights = regular_file(path / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != config.get("weights_sha256"):
        raise ModelFileError(f"{path / WEIGHTS} is damaged, or belongs to another model; copy the folder again")
    return config, weights


def max_config_bytes(weights: int) -> int:
    """Limit the size of `config.json` by the size of the weights, which grow with the number of series."""
    return _MAX_USUAL_CONFIG + _NAME_BYTES_PER_WEIGHT_BYTE * weights


def regular_file(path: Path, limit: int | None = None) -> bytes:
    """Read a regular file up to a limit, by default the size that its safetensors header announces.

    Raises:
        ModelFileError: When it is no regular file, too long, or cannot be read.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ModelFileError(f"{path} is not an ordinary file; give the folder that a fit wrote")
        with path.open("rb") as file:
            limit = _announced_size(file.read(8), file.read(_MAX_HEADER)) if limit is None else limit
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
    """Size of a safetensors file by its header; of an invalid file, enough to see that."""
    size = int.from_bytes(length, "little")
    try:
        entries = json.loads(header[:size]) if size <= _MAX_HEADER else {}
        ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
        return 8 + size + max(ends, default=0)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return _MAX_HEADER


def parse(content: bytes, file: Path) -> dict[str, Any]:
    """Parse `config.json`, up to its schema version.

    Raises:
        ModelFileError: When it is no JSON, has no schema version, or a newer one.
    """
    try:
        # Decoded first: given bytes, the parser guesses the encoding and imports a decoder for it.
        config: Any = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file} is not JSON ({error}); copy the folder again") from error
    version = config.get("schema") if isinstance(config, dict) else None
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} is not a LeapTS configuration; give the folder that a fit wrote")
    if version > SCHEMA:
        raise ModelFileError(
            f"{file.parent} was written by a newer LeapTS (schema {version}, this one knows {SCHEMA}); upgrade leapts"
        )
    return dict(config)


def to_json(config: Mapping[str, Any]) -> bytes:
    """Encode a configuration in the only layout that is accepted."""
    return json.dumps(config, indent=1, ensure_ascii=False).encode()


def _digest(config: dict[str, Any]) -> str:
    """Hash a configuration without its own digest."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _tensors(predictor: Predictor) -> dict[str, Tensor]:
    tensors = {f"model.{name}": value for name, value in predictor.model.state_dict().items()}
    tensors |= {"scaler.mean": predictor.scaler.mean, "scaler.std": predictor.scaler.std}
    tail = predictor.tail
    tensors |= {"tail.values": tail.values, "tail.offsets": tail.offsets}
    tensors["tail.first"] = torch.from_numpy(tail.first.astype("int64"))
    if tail.start_offsets is not None:
        tensors["tail.start_offsets"] = torch.from_numpy(tail.start_offsets)
    support = predictor.support
    tensors |= {"support.lower": support.lower, "support.upper": support.upper, "support.whole": support.whole}
    if predictor.covariates is not None:
        known = predictor.covariates.own_columns(tail)
        tensors |= {"covariates.values": known.values, "covariates.of_series": known.of_series}
        tensors["covariates.ends"] = known.ends
    if predictor.calibration is not None:
        tensors |= {f"calibration.{name}": value for name, value in predictor.calibration.to_tensors().items()}
    return tensors


def _predictor(contents: FolderConfig, tensors: dict[str, Tensor], model: LeapTSModel) -> Predictor:
    data, start_offsets = contents.data, tensors.get("tail.start_offsets")
    calibration = _under("calibration.", tensors) or _under("scores.", tensors)
    support = _under("support.", tensors)
    encoder = CovariateEncoder(contents.covariates) if contents.covariates else None
    return Predictor(
        config=contents.model,
        training=contents.training,
        model=model,
        clusters=contents.clusters,
        scaler=Scaler(tensors["scaler.mean"], tensors["scaler.std"]),
        tail=Panel(
            values=tensors["tail.values"],
            offsets=tensors["tail.offsets"],
            series=data.series,
            first=tensors["tail.first"].numpy().astype(data.timestamp_type),
            freq=data.freq,
            timezone=data.timezone,
            style=data.style,
            start_offsets=None if start_offsets is None else start_offsets.numpy(),
            covariates=None if encoder is None else encoder.stored(**_under("covariates.", tensors)),
        ),
        pad_short=contents.pad_short,
        report=contents.report,
        auto_config=AutoConfig(contents.auto_config),
        support=Support(**support) if support else Support.real(len(data.series)),
        calibration=Calibration.from_tensors(calibration, contents.model.quantiles) if calibration else None,
        covariates=encoder,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
